"""The honest answer of a finished run without a test: estimated, calibrated, and written down."""

from dataclasses import asdict
from typing import Any

from rich.progress import Progress
from safetensors.torch import load_file

from fullmatch.calibration import calibration
from fullmatch.data import SemiDataset, Source
from fullmatch.data.preparation import prepared
from fullmatch.display import console, say
from fullmatch.folds import Estimate
from fullmatch.given import load_source, split_of
from fullmatch.runfolder import RunFolder
from fullmatch.settings import config_of
from fullmatch.training.health import overconfident

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
        estimate = Estimate(config, dataset, folder.path / FOLDER)
        if estimate.parts:
            steps = estimate.config.training.steps
            say(
                f"estimating the accuracy on held-out labels: {len(estimate.parts)} parts, each "
                f"with and without the unlabeled pictures, {steps} steps"
            )
        with folder.locked(), folder.writing(), bar_of() as bar:
            task = bar.add_task("how good is it?", total=1.0)
            for at in estimate.records():
                done = at.part + (at.alone + at.step / at.steps) / 2
                bar.update(task, completed=done / at.parts)
    except KeyboardInterrupt:
        print("Stopped; the model is finished, and so are the parts of the estimate done so far.")
        print(f"Go on with:\n  {folder.resume_command}")
        raise
    result["honest"] = estimate.result
    if estimate.parts:
        held = load_file(folder.path / FOLDER / "held-out.safetensors")
        result |= calibration(held["probabilities"], held["labels"]).as_result()
        if too_sure := overconfident(folder.records(), estimate.result["accuracy"]):
            say(too_sure.sentence())
            result["health"] = [*result.get("health", []), asdict(too_sure)]
    folder.write_result(result)
    return estimate.result


def pending(result: dict[str, Any]) -> bool:
    """Whether a finished run still lacks its estimate."""
    answered = "honest" in result or "teacher" in result
    return not answered and result["algorithm"]["name"] != "supervised"


def bar_of() -> Progress:
    return Progress(console=console, transient=True, disable=not console.is_terminal)
