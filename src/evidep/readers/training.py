"""Fine-tuning of a pair classifier: a plain Accelerate loop that a kill does not set back and a seed decides.

What a step does depends on (seed, step, rank) alone: batches come from the seed, dropout is seeded anew for each step,
the learning rate is a function of the step. So a run resumed from a checkpoint ends with the same weights as one that
was never interrupted, at the same number of processes and threads.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

from evidep.errors import ReaderError
from evidep.readers.batching import out_of_memory
from evidep.readers.checkpoint import CheckpointFolder
from evidep.readers.pairing import EncodedPairs, input_lengths
from evidep.readers.recipe import Evaluation, FitReport, TrainSettings
from evidep.readers.schedule import epoch_batches, evaluation_steps, holdout, learning_rate, rank_share
from evidep.readers.scorer import model_inputs
from evidep.readers.watched import counted
from evidep.types import FloatArray, IntArray

logger = logging.getLogger(__name__)
CHECKED: Final = 128
"""Train items that are answered once after a fit without held-out items, to see whether it collapsed."""


Scores = Callable[[Any, IntArray], FloatArray]
"""(bare model, rows of the train table) -> logits [rows, C]: how held-out items are scored, sharded over processes."""


def fine_tune(
    model: Any,
    encoded: EncodedPairs,
    labels: IntArray,
    components: IntArray,
    settings: TrainSettings,
    *,
    seed: int,
    accelerator: Any,
    logits: Callable[[Any, Any], Any],
    score: Scores,
    typed: bool,
    exact: bool = False,
    checkpoints: CheckpointFolder | None = None,
) -> FitReport:
    """Train `model` in place; afterwards it carries the weights that did best on the held-out items.

    Args:
        model: A sequence classifier with float32 weights.
        encoded: The train table, tokenised.
        labels: [n] in [0, C).
        components: [n] items that must not be split between training and held-out part.
        settings: The recipe.
        seed: Decides held-out items, batches and dropout.
        accelerator: Devices, processes and precision.
        logits: (model, inputs) -> logits [B, C] in the order of the table's labels.
        score: Scores rows of the train table with a model.
        typed: Whether the model takes token types.
        exact: Whether only inputs of one length may be computed together (see `scorer.reads_padding`).
        checkpoints: Where to continue from and to save to, or None.

    Raises:
        ReaderError: The loss becomes nan, memory runs out for a single item, or a checkpoint is damaged.
    """
    import torch

    run = _Run(model, encoded, labels, settings, seed, accelerator, logits, typed, exact)
    trained, held, note = holdout(labels, components, settings.holdout_share, seed)
    everyone = np.arange(len(labels))
    lengths = input_lengths(encoded, *encoded.texts(everyone, everyone))
    steps_per_epoch = -(-len(trained) // settings.batch_size)
    total = steps_per_epoch * settings.epochs
    evaluate_at = evaluation_steps(steps_per_epoch, total, settings.evaluations_per_epoch) if len(held) else set()
    progress = _Progress()
    if checkpoints is not None and (checkpoint := checkpoints.load()) is not None:
        progress = run.restore(checkpoint.state, checkpoint.tensors)
    run.check_same_step(progress.step)
    if progress.step:
        logger.info("continuing the fit at step %d of %d", progress.step, total)
    started = saved = time.monotonic()
    epoch, batches = -1, [everyone]
    with (
        _seeded(accelerator.device.type),
        counted("fine-tuning", "step", total, done=progress.step, shown=accelerator.is_main_process) as advance,
    ):
        while progress.step < total and progress.waited < settings.patience:
            if progress.step // steps_per_epoch != epoch:
                epoch = progress.step // steps_per_epoch
                batches = epoch_batches(lengths[trained], settings.batch_size, seed, epoch)
            batch = trained[batches[progress.step % steps_per_epoch]]
            progress.loss_sum += run.step(batch, progress.step, learning_rate(progress.step, total, settings))
            progress.step += 1
            progress.loss_count += 1
            advance(1)
            if progress.step in evaluate_at:
                run.evaluate(progress, score, held)
            if checkpoints is not None and accelerator.is_main_process:
                due = time.monotonic() - saved >= settings.checkpoint_seconds
                if progress.step < total and (due or progress.step % steps_per_epoch == 0):
                    checkpoints.save(progress.step, *run.snapshot(progress))
                    saved = time.monotonic()
    if progress.best is not None:
        run.load_weights(progress.best)
    collapsed = progress.collapsed
    if progress.best is None:
        checked = everyone[np.linspace(0, len(everyone) - 1, min(CHECKED, len(everyone))).astype(np.int64)]
        collapsed = one_label(score(run.bare, checked), labels[checked])
    majority = float(np.bincount(labels[held]).max() / len(held)) if len(held) else float("nan")
    return FitReport(
        items=len(trained),
        held_out=len(held),
        steps=progress.step,
        best_step=progress.best_step if progress.best is not None else progress.step,
        evaluations=tuple(progress.evaluations),
        held_out_majority=majority,
        collapsed=collapsed,
        precision={"no": "fp32"}.get(accelerator.mixed_precision, accelerator.mixed_precision),
        world_size=accelerator.num_processes,
        threads=torch.get_num_threads(),
        micro_batch=run.micro,
        seconds=time.monotonic() - started,
        note=note,
    )


@dataclass(slots=True)
class _Progress:
    step: int = 0
    waited: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    best_step: int = 0
    best: dict[str, Any] | None = None
    collapsed: bool = False
    evaluations: list[Evaluation] = field(default_factory=list)


class _Run:
    """The model, its optimiser and the arithmetic of one step."""

    def __init__(
        self,
        model: Any,
        encoded: EncodedPairs,
        labels: IntArray,
        settings: TrainSettings,
        seed: int,
        accelerator: Any,
        logits: Callable[[Any, Any], Any],
        typed: bool,
        exact: bool = False,
    ) -> None:
        import torch

        self.encoded, self.labels, self.settings, self.seed = encoded, labels, settings, seed
        self.accelerator, self.logits, self.typed, self.exact = accelerator, logits, typed, exact
        self.micro = settings.micro_batch or -(-settings.batch_size // accelerator.num_processes)
        self.bare = model.train()
        plain = [p for p in model.parameters() if p.requires_grad and p.ndim < 2]
        decayed = [p for p in model.parameters() if p.requires_grad and p.ndim >= 2]
        groups = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        fused = accelerator.device.type in ("cpu", "cuda")
        optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, fused=fused)
        self.model, self.optimizer = accelerator.prepare(model, optimizer)

    def step(self, batch: IntArray, step: int, rate: float) -> float:
        """One optimiser step on a batch; returns this process's share of the mean loss. Retries with less memory."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        while True:
            try:
                return self._step(batch, step, rate)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                if self.micro == 1 or self.accelerator.num_processes > 1:
                    raise ReaderError(
                        f"out of memory in fine-tuning with {self.micro} item(s) at once on each of "
                        f"{self.accelerator.num_processes} process(es); set a smaller micro_batch or max_length"
                    ) from error
            self.optimizer.zero_grad()
            self.micro = -(-min(self.micro, len(batch)) // 2)
            logger.warning("out of memory: going on with %d items at once", self.micro)

    def _step(self, batch: IntArray, step: int, rate: float) -> float:
        import torch

        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        torch.manual_seed(int(np.random.SeedSequence([self.seed, step, rank]).generate_state(1)[0]))
        rows, weight = rank_share(batch, rank, world)
        parts = self._parts(rows)
        loss_sum = 0.0
        for number, part in enumerate(parts):
            with contextlib.nullcontext() if number == len(parts) - 1 else self.accelerator.no_sync(self.model):
                losses = self._losses(rows[part]) * torch.from_numpy(weight[part]).to(self.accelerator.device)
                # Processes average their gradients, so times their number; over the whole batch, not the part.
                loss = losses.sum() * (world / len(batch))
                self.accelerator.backward(loss)
            loss_sum += loss.item()
        if not np.isfinite(loss_sum):
            raise ReaderError(
                f"the loss became {loss_sum} at step {step + 1} (learning rate {rate:.3g}, precision "
                f"{self.accelerator.mixed_precision}); use a smaller learning_rate or precision fp32"
            )
        self.accelerator.clip_grad_norm_(self.model.parameters(), self.settings.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(loss_sum / world)

    def _parts(self, rows: IntArray) -> list[IntArray]:
        """Positions in `rows` that are computed together."""
        groups = [np.arange(len(rows))]
        if self.exact:
            lengths = input_lengths(self.encoded, *self.encoded.texts(rows, rows))
            groups = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
        return [group[at : at + self.micro] for group in groups for at in range(0, len(group), self.micro)]

    def _losses(self, rows: IntArray) -> Any:
        import torch

        inputs = model_inputs(self.encoded, *self.encoded.texts(rows, rows), self.accelerator.device, self.typed)
        gold = torch.from_numpy(self.labels[rows]).to(self.accelerator.device)
        logits = self.logits(self.model, inputs).float()
        return torch.nn.functional.cross_entropy(logits, gold, reduction="none").double()

    def evaluate(self, progress: _Progress, score: Scores, held: IntArray) -> None:
        """Score the held-out items and keep the weights if they are the best so far."""
        import torch

        scores = score(self.bare, held)
        self.bare.train()
        shifted = scores - scores.max(axis=1, keepdims=True)
        log_probability = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        gold = self.labels[held]
        accuracy = float((scores.argmax(axis=1) == gold).mean())
        loss = float(-log_probability[np.arange(len(held)), gold].mean())
        device = self.accelerator.device
        total = self.accelerator.reduce(torch.tensor(progress.loss_sum, dtype=torch.float32, device=device), "sum")
        train_loss = float(total) / max(progress.loss_count, 1)
        best = max(((e.accuracy, -e.loss) for e in progress.evaluations), default=(-1.0, 0.0))
        progress.evaluations.append(Evaluation(progress.step, loss, accuracy, train_loss))
        progress.loss_sum, progress.loss_count = 0.0, 0
        if (accuracy, -loss) > best:
            progress.best_step, progress.waited = progress.step, 0
            progress.collapsed = one_label(scores, gold)
            progress.best = {name: p.detach().to("cpu", copy=True) for name, p in self.bare.named_parameters()}
        else:
            progress.waited += 1

    def load_weights(self, weights: dict[str, Any]) -> None:
        """Put the named weights into the model."""
        import torch

        with torch.no_grad():
            for name, parameter in self.bare.named_parameters():
                parameter.copy_(weights[name])

    def snapshot(self, progress: _Progress) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """All that the next step depends on, as (plain values, groups of tensors)."""
        scaler = self.accelerator.scaler
        state = {
            "waited": progress.waited,
            "loss_sum": progress.loss_sum,
            "loss_count": progress.loss_count,
            "best_step": progress.best_step,
            "collapsed": progress.collapsed,
            "evaluations": [asdict(e) for e in progress.evaluations],
            "micro_batch": self.micro,
            "world_size": self.accelerator.num_processes,
            "scaler": None if scaler is None else scaler.state_dict(),
        }
        moments = {
            f"{name}|{key}": value
            for name, parameter in self.bare.named_parameters()
            for key, value in self._inner().state.get(parameter, {}).items()
        }
        tensors = {"model": dict(self.bare.named_parameters()), "optimizer": moments}
        if progress.best is not None:
            tensors["best"] = progress.best
        return state, tensors

    def restore(self, state: dict[str, Any], tensors: dict[str, dict[str, Any]]) -> _Progress:
        """Continue from a snapshot."""
        self.load_weights(tensors["model"])
        parameters = dict(self.bare.named_parameters())
        inner = self._inner()
        for name, value in tensors["optimizer"].items():
            parameter_name, key = name.rsplit("|", 1)
            parameter = parameters[parameter_name]
            inner.state[parameter][key] = value.to(parameter.device)
        if state["scaler"] is not None and self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(state["scaler"])
        if state["world_size"] != self.accelerator.num_processes:
            logger.warning(
                "the fit was begun on %d processes and goes on with %d: the result is not bit for bit the same",
                state["world_size"],
                self.accelerator.num_processes,
            )
        self.micro = state["micro_batch"]
        return _Progress(
            step=state["step"],
            waited=state["waited"],
            loss_sum=state["loss_sum"],
            loss_count=state["loss_count"],
            best_step=state["best_step"],
            collapsed=state["collapsed"],
            best=tensors.get("best"),
            evaluations=[Evaluation(**e) for e in state["evaluations"]],
        )

    def check_same_step(self, step: int) -> None:
        """Refuse to start where processes found different checkpoints.

        Raises:
            ReaderError: The workdir is not one folder that all hosts share.
        """
        import torch

        steps = self.accelerator.gather(torch.tensor([step], device=self.accelerator.device)).tolist()
        if len(set(steps)) > 1:
            raise ReaderError(
                f"processes would continue from different steps ({steps}); all hosts must share one workdir folder"
            )

    def _inner(self) -> Any:
        return self.optimizer.optimizer


def one_label(scores: FloatArray, gold: IntArray) -> bool:
    """Whether all answers are one label although the gold labels are not."""
    return len(np.unique(scores.argmax(axis=1))) == 1 and len(np.unique(gold)) > 1


@contextlib.contextmanager
def _seeded(device_type: str) -> Iterator[None]:
    """Leaves torch's random state, and its determinism switch on GPUs, as they were."""
    import torch

    before, warn_only = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    with torch.random.fork_rng():
        if device_type != "cpu":
            torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before, warn_only=warn_only)
