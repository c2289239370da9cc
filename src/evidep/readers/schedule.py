"""What each step of a fine-tuning run works on, as a function of the seed alone."""

from __future__ import annotations

from typing import Final

import numpy as np

from evidep.readers.recipe import TrainSettings
from evidep.types import FloatArray, IntArray

BUCKET: Final = 50
"""Batches whose items are sorted by length together: long enough to pad little, short enough to stay random."""
LEAST_HELD_OUT: Final = 20
"""Fewer held-out items than this choose no epoch."""


def holdout(labels: IntArray, components: IntArray, share: float, seed: int) -> tuple[IntArray, IntArray, str | None]:
    """Rows to train on, rows held out, and why none are held out (else None).

    Whole components move together, so no held-out item shares a query, evidence or group with a trained one. Within
    the components whose commonest label is the same, about `share` of the items is taken at random.
    """
    everyone = np.arange(len(labels))
    if share == 0:
        return everyone, everyone[:0], "holdout_share is 0"
    _, component = np.unique(components, return_inverse=True)
    component = component.reshape(-1)
    n_components, n_classes = int(component.max(initial=-1)) + 1, int(labels.max(initial=0)) + 1
    table = np.zeros((n_components, n_classes), dtype=np.int64)
    np.add.at(table, (component, labels), 1)
    size, kind = table.sum(axis=1), table.argmax(axis=1)
    order = np.random.default_rng([seed, 0x401D]).permutation(n_components)
    chosen = np.zeros(n_components, dtype=bool)
    for label in range(n_classes):
        members = order[kind[order] == label]
        wanted = share * size[members].sum()
        # A component that alone overshoots is passed over, so that one huge component is never held out whole.
        taken = 0
        for member in members.tolist():
            if taken + size[member] <= wanted + 0.5:
                chosen[member] = True
                taken += int(size[member])
    held = np.flatnonzero(chosen[component])
    if len(held) < max(LEAST_HELD_OUT, 2 * n_classes):
        reason = f"only {len(held)} of {len(labels)} items could be held out ({n_components} connected groups of items)"
        return everyone, everyone[:0], reason
    return np.flatnonzero(~chosen[component]), held, None


def epoch_batches(lengths: IntArray, batch_size: int, seed: int, epoch: int) -> list[IntArray]:
    """Batches of positions for one epoch: random, with items of similar length together."""
    rng = np.random.default_rng([seed, epoch, 0xBA7C])
    order = rng.permutation(len(lengths))
    batches: list[IntArray] = []
    for start in range(0, len(order), batch_size * BUCKET):
        bucket = order[start : start + batch_size * BUCKET]
        bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
        batches.extend(bucket[at : at + batch_size] for at in range(0, len(bucket), batch_size))
    return [batches[at] for at in rng.permutation(len(batches)).tolist()]


def learning_rate(step: int, total: int, settings: TrainSettings) -> float:
    """Learning rate of a 0-based step: linear warm-up to the peak, then linear decay to 0."""
    warmup = int(np.ceil(settings.warmup_share * total))
    if step < warmup:
        return settings.learning_rate * (step + 1) / warmup
    return settings.learning_rate * (total - step) / max(total - warmup, 1)


def rank_share(batch: IntArray, rank: int, world: int) -> tuple[IntArray, FloatArray]:
    """The part of a batch that one process computes, and the weight (1 or 0) of each item.

    All processes get equally many items; the surplus repeats the batch's first item with weight 0.
    """
    each = -(-len(batch) // world)
    filled = np.concatenate([batch, np.repeat(batch[:1], each * world - len(batch))])
    weight = (np.arange(each * world) < len(batch)).astype(np.float64)
    mine = slice(rank, None, world)
    return filled[mine], weight[mine]


def evaluation_steps(steps_per_epoch: int, total: int, per_epoch: int) -> set[int]:
    """The numbers of finished steps after which the held-out items are scored, the end of each epoch among them."""
    starts = range(0, total, steps_per_epoch)
    shares = np.linspace(0, steps_per_epoch, min(per_epoch, steps_per_epoch) + 1)[1:]
    return {start + round(share) for start in starts for share in shares.tolist()}
