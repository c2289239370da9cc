"""Kemeny consensus: the order of the systems that contradicts the fewest pairwise comparisons within tasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.sparse.csgraph import connected_components

from evidep.types import FloatArray, IntArray

EXACT_LIMIT = 10
"""Most systems in one cycle of majorities that are still ordered exactly."""


@dataclass(frozen=True, slots=True, eq=False)
class Consensus:
    """A Kemeny order.

    Attributes:
        positions: [S] mean position over all optimal orders, 1 = best; over the one order found where not exact.
        cost: Number of (task, pair) comparisons that the order contradicts; a tie counts one half whatever the order.
        lower_bound: No order contradicts fewer; equal to `cost` proves optimality.
        n_optimal: How many orders have this least cost; nan where not exact.
        exact: Whether the order is proven optimal.
    """

    positions: FloatArray
    cost: float
    lower_bound: float
    n_optimal: float
    exact: bool


def kemeny(wins: FloatArray) -> Consensus:
    """The consensus order of one table.

    Exact for up to 10 systems, and for more wherever no cycle of majorities ties more than 10 of them together: the
    strong components of the majority relation follow each other in every optimal order (extended Condorcet criterion,
    Truchon 1998). Larger components are ordered by local search from the Borda order, and `exact` is False unless the
    cost meets the lower bound.

    Args:
        wins: [S, S] weighted number of tasks on which the row beats the column, ties one half to each.
    """
    lower_bound = float(np.minimum(wins, wins.T)[np.triu_indices(len(wins), 1)].sum())
    positions = np.empty(len(wins))
    cost, n_optimal, placed, small = 0.0, 1.0, 0, True
    later = np.ones(len(wins), dtype=np.bool_)
    for part in _majority_components(wins):
        inner = wins[np.ix_(part, part)]
        if len(part) <= EXACT_LIMIT:
            inside, least, ways = exact_positions(inner[None])
            positions[part] = placed + inside[0]
            cost += float(least[0])
            n_optimal *= float(ways[0])
        else:
            small = False
            order = _local_search(inner)
            positions[part[order]] = placed + 1.0 + np.arange(len(part))
            cost += order_cost(inner, order)
        later[part] = False
        cost += float(wins[np.ix_(np.flatnonzero(later), part)].sum())
        placed += len(part)
    return Consensus(positions, cost, lower_bound, n_optimal if small else np.nan, small or cost == lower_bound)


def order_cost(wins: FloatArray, order: IntArray) -> float:
    """How many comparisons an order contradicts (see `Consensus.cost`).

    Args:
        wins: [S, S] as in `kemeny`.
        order: [S] systems from best to worst.
    """
    arranged = wins[np.ix_(order, order)]
    return float(np.tril(arranged, -1).sum())


def exact_positions(wins: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Exact Kemeny for many small tables at once, by dynamic programming over the set of systems already placed.

    Args:
        wins: [B, n, n] with n <= 10, in multiples of one half (sums are compared exactly).

    Returns:
        positions [B, n], the mean position over all optimal orders; cost [B]; number of optimal orders [B].
    """
    n_draws, n, _ = wins.shape
    if n == 1:
        return np.ones((n_draws, 1)), np.zeros(n_draws), np.ones(n_draws)
    member, layers = _subsets(n)
    # against[b, j, M]: comparisons contradicted by placing j right after the set M.
    against = np.einsum("bji,mi->jmb", wins, member)
    best = np.full((1 << n, n_draws), np.inf)
    ways = np.zeros((1 << n, n_draws))
    best[0], ways[0] = 0.0, 1.0
    for layer in layers[1:]:
        for j in range(n):
            masks = layer[member[layer, j] > 0]
            before = masks ^ (1 << j)
            cost = best[before] + against[j, before]
            better, equal = cost < best[masks], cost == best[masks]
            ways[masks] = np.where(better, ways[before], np.where(equal, ways[masks] + ways[before], ways[masks]))
            best[masks] = np.where(better, cost, best[masks])
    full = (1 << n) - 1
    onward = np.zeros((1 << n, n_draws))
    onward[full] = 1.0
    positions = np.zeros((n, n_draws))
    for size in range(n, 0, -1):
        layer = layers[size]
        for j in range(n):
            masks = layer[member[layer, j] > 0]
            before = masks ^ (1 << j)
            on_path = best[before] + against[j, before] == best[masks]
            passing = np.where(on_path, onward[masks], 0.0)
            positions[j] += size * (ways[before] * passing).sum(axis=0)
            onward[before] += passing
    return (positions / ways[full]).T, best[full], ways[full]


@lru_cache(maxsize=16)
def _subsets(n: int) -> tuple[FloatArray, list[IntArray]]:
    masks = np.arange(1 << n)
    member = ((masks[:, None] >> np.arange(n)) & 1).astype(np.float64)
    size = member.sum(axis=1)
    return member, [np.flatnonzero(size == k) for k in range(n + 1)]


def _majority_components(wins: FloatArray) -> list[IntArray]:
    """Strong components of "beats or ties on the tasks that both have", from best to worst."""
    at_least = wins >= wins.T
    n_parts, part = connected_components(at_least, directed=True, connection="strong")
    groups = [np.flatnonzero(part == p) for p in range(n_parts)]
    # Between components every majority is strict and points one way: sort by the number of systems beaten.
    beaten = (wins > wins.T).sum(axis=1)
    return sorted(groups, key=lambda rows: -float(beaten[rows].mean()))


def _local_search(wins: FloatArray) -> IntArray:
    """Best order reachable by moving one system at a time, from the Borda and the Copeland order."""
    margin = wins - wins.T
    starts = [np.argsort(-wins.sum(axis=1), kind="stable"), np.argsort(-np.sign(margin).sum(axis=1), kind="stable")]
    finished = [_insertions(margin, start) for start in starts]
    return min(finished, key=lambda order: order_cost(wins, order))


def _insertions(margin: FloatArray, order: IntArray) -> IntArray:
    improved = True
    while improved:
        improved = False
        for system in order.tolist():
            at = int(np.flatnonzero(order == system)[0])
            lead = margin[system, order]
            # Gain of moving up to position p: the lead over all that are passed; moving down: minus that lead.
            up = np.cumsum(lead[:at][::-1])
            down = -np.cumsum(lead[at + 1 :])
            best_up = int(np.argmax(up)) if len(up) else -1
            best_down = int(np.argmax(down)) if len(down) else -1
            gain_up = up[best_up] if len(up) else 0.0
            gain_down = down[best_down] if len(down) else 0.0
            if max(gain_up, gain_down) <= 0.0:
                continue
            target = at - best_up - 1 if gain_up >= gain_down else at + best_down + 1
            rest = np.delete(order, at)
            order = np.insert(rest, target, system)
            improved = True
    return order
