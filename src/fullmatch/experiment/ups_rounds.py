"""UPS as published: rounds of self-training, each a complete run from new weights."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from fullmatch.algorithms.sampling import apply_dropout
from fullmatch.algorithms.ups_offline import UPSOffline, empty_choice
from fullmatch.algorithms.ups_rounds import PseudoLabelChoice, choose_labels
from fullmatch.config import ExperimentConfig
from fullmatch.data import Source
from fullmatch.errors import UserError
from fullmatch.experiment.inputs import (
    choose_split,
    load_source,
    with_absolute_paths,
    with_unknown_classes,
)
from fullmatch.experiment.run import Run
from fullmatch.experiment.settings import read_config
from fullmatch.experiment.start import resume, start
from fullmatch.experiment.student_and_teacher import EVALUATION_BATCH
from fullmatch.storage.run_folder import RunFolder, read_file
from fullmatch.storage.tensors import write_tensors
from fullmatch.training.randomness import preserve_rng, seed_step
from fullmatch.training.step import autocast

SAMPLES = 10  # passes with dropout by which an image is labeled


def train_rounds(
    config: ExperimentConfig, parent: Path, count: int, train: Callable[[Run], None]
) -> Iterator[RunFolder]:
    """Train round after round below `parent`; finished ones are kept, an unfinished one resumes."""
    spec = config.algorithm
    if not isinstance(spec, UPSOffline):
        raise UserError("only ups_offline is trained in rounds; leave algorithm.name out")
    if RunFolder(parent).started:
        raise UserError(f"{parent} is a run itself; choose another folder with --out")
    config = with_unknown_classes(config)
    source = load_source(config)
    expected = with_absolute_paths(config, choose_split(config, source))
    for number in range(1, count + 1):
        folder = round_folder(parent, number)
        if folder.started and expected != without_choice(read_config(folder)):
            raise UserError(f"{folder.path} has other settings; choose another folder with --out")
        balanced = number <= spec.balanced_rounds
        choice = folder.path / "choice.safetensors"
        if read_balanced(choice) is not balanced:
            if choice.exists() and round_folder(parent, number + 1).path.exists():
                raise UserError(
                    f"{folder.path} chose its labels with another number of balanced rounds than "
                    f"{spec.balanced_rounds}, and the next round has learned them; choose another "
                    "folder with --out"
                )
            run = start_or_resume(replace(config, algorithm=spec), folder, source)
            if not folder.finished:
                train(run)
            write_choice(choice, label_images(run, balanced=balanced), balanced)
        spec = replace(spec, choice=str(choice))
        yield folder


def round_folder(parent: Path, number: int) -> RunFolder:
    return RunFolder(parent / f"round-{number:02d}")


def without_choice(config: ExperimentConfig) -> ExperimentConfig:
    """A round's settings as the user gave them, without the labels of the round before."""
    return replace(config, algorithm=replace(config.algorithm, choice=""))


def start_or_resume(config: ExperimentConfig, folder: RunFolder, source: Source) -> Run:
    return resume(folder, source) if folder.started else start(config, folder, source)


def label_images(run: Run, *, balanced: bool) -> PseudoLabelChoice:
    """What the trained student says about all unlabeled images; nothing of the labeled ones."""
    unlabeled, count = run.dataset.unlabeled, run.dataset.num_classes
    free = ~torch.isin(unlabeled, run.dataset.labeled)
    chosen = choose_labels(sample_logits(run, unlabeled[free]), balanced=balanced)
    choice = empty_choice((len(unlabeled), count))
    for place, part in zip(choice, chosen, strict=True):
        place[free] = part
    return choice


@torch.no_grad()
def sample_logits(run: Run, positions: Tensor) -> Tensor:  # (S, N, C)
    """Logits of images, sampled with dropout."""
    state, images, spec = run.state, run.dataset.images, run.config.algorithm
    assert isinstance(spec, UPSOffline)
    state.student.eval()  # running statistics; only the dropout below is random
    logits = [torch.empty(SAMPLES, 0, run.dataset.num_classes)]
    with preserve_rng(run.device), autocast(run.device, run.bf16):
        seed_step(run.config.seed, state.step, 0, run.device)
        for at in range(0, len(positions), EVALUATION_BATCH):
            index = positions[at : at + EVALUATION_BATCH]
            view = run.augment(images.read(index).to(run.device), "plain")
            features = state.student.pool(state.student.feature_map(view))
            samples = apply_dropout(spec.dropout, *[features] * SAMPLES)
            classified = [state.student.classify(sample) for sample in samples]
            logits.append(torch.stack(classified).float().cpu())
    return torch.cat(logits, dim=1)


def write_choice(path: Path, choice: PseudoLabelChoice, balanced: bool) -> None:
    write_tensors(path, choice._asdict(), balanced=str(balanced))


def read_balanced(path: Path) -> bool | None:
    """Whether a round's choice is balanced; None where it has not chosen yet."""

    def read(path: Path) -> bool:
        with safe_open(path, framework="pt") as file:
            return (file.metadata() or {}).get("balanced") == "True"

    advice = "delete it, then run the same command again"
    return read_file(path, read, advice) if path.exists() else None
