"""UPS as published: rounds of self-training, each a whole run that starts from nothing."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from fullmatch.algorithms.sampling import apply_dropout
from fullmatch.algorithms.ups_offline import UPSOffline
from fullmatch.algorithms.ups_rounds import PseudoLabelChoice, choose_labels
from fullmatch.config import ExperimentConfig
from fullmatch.data import Source
from fullmatch.errors import UserError
from fullmatch.experiment.build import EVALUATION_BATCH
from fullmatch.experiment.inputs import choose_split, load_source, with_absolute_paths
from fullmatch.experiment.run import Run, resume, start
from fullmatch.experiment.settings import read_config
from fullmatch.storage.run_folder import RunFolder
from fullmatch.storage.tensors import write_tensors
from fullmatch.training.randomness import preserve_rng, seed_step
from fullmatch.training.step import autocast

SAMPLES = 10  # passes with dropout by which an image is labeled


def rounds(
    config: ExperimentConfig, parent: Path, count: int, follow: Callable[[Run], None]
) -> Iterator[RunFolder]:
    """Train round after round below `parent`; finished ones are kept, a broken one goes on."""
    spec = config.algorithm
    if not isinstance(spec, UPSOffline):
        raise UserError("rounds are of ups_offline alone; leave algorithm.name out")
    if RunFolder(parent).config.exists():
        raise UserError(f"{parent} is a run itself; name another folder with --out")
    source = load_source(config)
    asked = with_absolute_paths(config, choose_split(config, source))
    for number in range(1, count + 1):
        folder = RunFolder(parent / f"round-{number:02d}")
        chosen = folder.path / "choice.safetensors"
        if folder.config.exists() and asked != without_choice(read_config(folder)):
            raise UserError(f"{folder.path} has other settings; name another folder with --out")
        # All but the last rounds hand on the same number of labels of every class.
        balanced = number < count - 1
        if was_balanced(chosen) is not balanced:
            if chosen.exists() and (parent / f"round-{number + 1:02d}").exists():
                raise UserError(
                    f"{parent} has another number of rounds than {count}: the next round would "
                    f"learn from other labels than {folder.path.name} chose; name another folder "
                    "with --out"
                )
            run = a_round(replace(config, algorithm=spec), folder, source)
            if not folder.result.exists():
                follow(run)
            write(chosen, choice_of(run, balanced=balanced), balanced)
        spec = replace(spec, choice=str(chosen))
        yield folder


def without_choice(config: ExperimentConfig) -> ExperimentConfig:
    """What was asked for: the rest of a round's settings is what the round before chose."""
    return replace(config, algorithm=replace(config.algorithm, choice=""))


def a_round(config: ExperimentConfig, folder: RunFolder, source: Source) -> Run:
    if folder.config.exists():
        return resume(folder, source)
    return start(config, folder, source)


@torch.no_grad()
def choice_of(run: Run, *, balanced: bool) -> PseudoLabelChoice:
    """What the trained student says of every image, sampled with dropout."""
    state, images = run.state, run.dataset.images
    spec = run.config.algorithm
    assert isinstance(spec, UPSOffline)
    state.student.eval()  # running statistics; only the dropout below is random
    parts: list[Tensor] = []
    with preserve_rng(run.device), autocast(run.device, run.bf16):
        seed_step(run.config.seed, state.step, 0, run.device)
        for at in range(0, len(run.dataset.unlabeled), EVALUATION_BATCH):
            index = run.dataset.unlabeled[at : at + EVALUATION_BATCH]
            view = run.augment(images.read(index).to(run.device), "plain")
            features = state.student.pool(state.student.feature_map(view))
            seen = apply_dropout(spec.dropout, *[features] * SAMPLES)
            drawn = [state.student.classify(one) for one in seen]
            parts.append(torch.stack(drawn).float().cpu())
    return choose_labels(torch.cat(parts, dim=1), balanced=balanced)


def write(path: Path, choice: PseudoLabelChoice, balanced: bool) -> None:
    write_tensors(path, choice._asdict(), balanced=str(balanced))


def was_balanced(path: Path) -> bool | None:
    """How a round chose; None where it has not chosen yet."""
    if not path.exists():
        return None
    with safe_open(path, framework="pt") as file:
        return (file.metadata() or {}).get("balanced") == "True"
