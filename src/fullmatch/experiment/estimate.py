"""The honest answer of a finished run without a test: estimated, calibrated, and written down."""

from dataclasses import asdict
from time import monotonic
from typing import Any

from rich import progress
from safetensors.torch import load_file

from fullmatch.cli.terminal import console, say
from fullmatch.data import SemiDataset, Source
from fullmatch.data.quality.cleaning import prepared
from fullmatch.evaluation.calibration import calibration
from fullmatch.experiment.cross_validation import Estimate, Progress
from fullmatch.experiment.inputs import hash_of, load_source, refuse_changed, split_of
from fullmatch.experiment.settings import config_of
from fullmatch.storage.run_folder import RunFolder
from fullmatch.storage.runs import any_unlabeled
from fullmatch.training.health import Knobs, overconfident

FOLDER = "folds"


def honest(folder: RunFolder, source: Source | None = None) -> dict[str, Any] | None:
    """Add the estimate to a run's result; None where there is a test, which answers better.

    A second call does nothing, and one after an interrupt goes on with the next part.
    """
    result = folder.read_result()
    if not pending(result):
        return result.get("honest")
    try:
        config = config_of(folder)
        source = load_source(config) if source is None else source
        split = split_of(config, source)
        dataset = prepared(SemiDataset.of(source, split), flip=config.data.flip)
        known = result.get("data_hash", "")
        refuse_changed(dataset, hash_of(dataset), known, f"{folder.path} was trained")
        estimate = Estimate(config, dataset, folder.path / FOLDER)
        if estimate.parts:
            steps = estimate.config.training.steps
            say(
                f"estimating the accuracy on held-out labels: {len(estimate.parts)} parts, each "
                f"learned by this method and from the labels alone, {steps} steps"
            )
        with folder.locked(), folder.writing(), bar_of() as bar:
            task = bar.add_task("how good is it?", total=1.0)
            lines = PartLines()
            for at in estimate.records():
                bar.update(task, completed=at.done)
                lines.show(at)
    except KeyboardInterrupt:
        print("Stopped; the model is finished, and so are the parts of the estimate done so far.")
        print(f"Go on with:\n  {folder.resume_command}")
        raise
    result["honest"] = estimate.result
    if estimate.parts:
        held = load_file(folder.path / FOLDER / "held-out.safetensors")
        result |= calibration(held["probabilities"], held["labels"]).as_result()
        knobs = Knobs.of(config.algorithm, config.optimizer.rate, config.optimizer.clip)
        too_sure = overconfident(folder.records(), estimate.result["accuracy"], knobs)
        if too_sure and any_unlabeled(result):
            say(too_sure.sentence())
            result["health"] = [*result.get("health", []), asdict(too_sure)]
    folder.write_result(result)
    return estimate.result


def pending(result: dict[str, Any]) -> bool:
    """Whether a finished run still lacks its estimate."""
    answered = "honest" in result or "teacher" in result
    return not answered and result["algorithm"]["name"] != "supervised"


def bar_of() -> progress.Progress:
    return progress.Progress(console=console, transient=True, disable=not console.is_terminal)


class PartLines:
    """A line for every part that is done, where no bar can be drawn."""

    def __init__(self) -> None:
        self.first: tuple[float, float] | None = None  # share done and time; some may be kept
        self.part = 0

    def show(self, at: Progress) -> None:
        if self.first is None:
            self.first, self.part = (at.done, monotonic()), at.part
        if console.is_terminal or at.part == self.part:
            return
        self.part = at.part
        share, began = self.first
        left = (monotonic() - began) / (at.done - share) * (1 - at.done)
        print(f"estimate {at.part}/{at.parts}  {left:.0f} s left", flush=True)
