"""Accuracy without a test set: labels are held out in turn, and models trained without them.

With few labels every one of them is held out once (twice when there are very few); with many, a
fifth of them is. What is held out leaves the unlabeled pictures too, and so do its exact
duplicates: the model will meet new pictures, and must not have trained on these. Duplicates are
held out together. Each fold trains a model with the unlabeled pictures and one without, for fewer
steps than the final model, which also has more labels: the estimate is rather too low than too
high.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from fullmatch import distributed
from fullmatch.algorithms import name_of
from fullmatch.config import ExperimentConfig, fingerprint, identifying_table
from fullmatch.data import SemiDataset
from fullmatch.data.quality.cleaning import balance_classes
from fullmatch.data.quality.duplicates import find_exact_duplicates
from fullmatch.data.quality.fingerprints import compute_digests
from fullmatch.data.stores.features import read_store
from fullmatch.evaluation.intervals import wilson_interval
from fullmatch.evaluation.paired import compare_paired
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.feature_pass import FrozenFeatures
from fullmatch.experiment.identity import hash_dataset
from fullmatch.experiment.presets import labels_only, with_steps
from fullmatch.files.reading import require_tensors
from fullmatch.storage.result import Accuracy, Estimate
from fullmatch.storage.tensors import write_tensors
from fullmatch.training.randomness import preserve_rng, seed_step

LEAST_STEPS = 100  # of a fold's model, unless the final model has fewer
FOLDS = 5  # parts of the labels that are held out in turn
MANY = 200  # labels from which only one part is held out
VERY_FEW = 30  # labels below which every part is held out twice
SHORTER = 3  # the final model trains this many times longer than the models of the folds
MOST_HELD_OUT = 2000  # more add nothing to the estimate
HELD_OUT = "held-out.safetensors"


@dataclass(frozen=True)
class FoldOptions:
    """How labels are held out, and how long the models of the folds train at least."""

    folds: int = FOLDS
    many: int = MANY
    very_few: int = VERY_FEW
    least_steps: int = LEAST_STEPS
    shorter: int = SHORTER
    baseline: bool = True  # also train models on the labels only


DEFAULT_FOLDS = FoldOptions()


@dataclass(frozen=True)
class FoldProgress:
    """How far cross-validation has come."""

    fold: int  # from 0
    folds: int
    baseline: bool  # the model on the labels only is being trained
    step: int
    steps: int

    @property
    def done(self) -> float:
        """The fraction of all work that is done."""
        return (self.fold + (self.baseline + self.step / self.steps) / 2) / self.folds


def fold_steps(steps: int, least: int = LEAST_STEPS, shorter: int = SHORTER) -> int:
    """Steps of a fold's model: a part of the final model's, but `least` if it has them."""
    return min(steps, max(least, steps // shorter))


class CrossValidation:
    """Call `run` to the end, then read `estimate`; finished folds are saved and reused."""

    estimate: Estimate | None = None  # None until it is done, or where no label can be held out

    def __init__(
        self,
        config: ExperimentConfig,
        dataset: SemiDataset,
        folder: Path,
        options: FoldOptions = DEFAULT_FOLDS,
        features: FrozenFeatures | None = None,
    ) -> None:
        self.dataset, self.folder, self.features = dataset, folder, features
        self.options = options
        self.digests = compute_digests(dataset.images)
        self.folds = draw_folds(dataset, self.digests, config.seed, options)
        # Earlier weights may have been trained on the labels that are held out here.
        self.without_start = config.model.start is not None
        fresh = replace(config, baseline=False, model=replace(config.model, start=None))
        # A head is trained in seconds, and needs no shortening.
        steps = fold_steps(config.training.steps, options.least_steps, options.shorter)
        self.config = with_steps(fresh, steps) if fresh.model.body == "trained" else fresh
        self.predictions: dict[bool, list[Tensor]] = {False: [], True: []}  # by: baseline?

    def run(self) -> Iterator[FoldProgress]:
        if distributed.is_first():
            self.folder.mkdir(parents=True, exist_ok=True)
        self.predictions = {False: [], True: []}
        for fold, held_out in enumerate(self.folds):
            for baseline in (False, True) if self.options.baseline else (False,):
                yield from self.run_fold(fold, held_out, baseline)
        if self.folds and self.options.baseline:
            self.estimate = distributed.on_first(self.summarize)

    @property
    def count(self) -> int:
        return len(self.folds)

    def accuracy(self, *, baseline: bool = False) -> Accuracy | None:
        """On the held-out labels of all folds that `run` has trained; None without any."""
        if not self.folds:
            return None
        hits = hit_rates(self.folds, self.predictions[baseline], self.dataset.labels)
        mean_hit = float(hits.mean())
        return Accuracy(accuracy=mean_hit, interval=wilson_interval(mean_hit, len(hits)))

    def run_fold(self, fold: int, held_out: Tensor, baseline: bool) -> Iterator[FoldProgress]:
        """Train without the held-out labels, and predict them; saved predictions are reused."""
        config = labels_only(self.config) if baseline else self.config
        dataset = without_held_out(self.dataset, held_out, self.digests)
        # The second name is that of earlier versions.
        names = ("baseline", "labels-only") if baseline else ("all", "all")
        path, earlier = (self.folder / f"{fold}-{name}.safetensors" for name in names)
        marks = fold_marks(config, dataset)
        probabilities = read_fold(path, marks)
        if probabilities is None:
            probabilities = read_fold(earlier, marks)
        if probabilities is None:
            features = None if self.features is None else self.features.with_test(held_out)
            model = Assembly(config, dataset, features=features)
            steps = config.training.steps
            for record in model.trainer.run(until=steps):
                yield FoldProgress(fold, len(self.folds), baseline, record.step, steps)
            probabilities = predict_held_out(model)
            if distributed.is_first():
                write_tensors(path, {"probabilities": probabilities}, mark=marks[0])
        self.predictions[baseline].append(probabilities)

    def summarize(self) -> Estimate:
        """All folds together: accuracy, interval, and the gain over the baseline."""
        index, probabilities = mean_by_picture(self.folds, self.predictions[False])
        labels = self.dataset.labels[index]
        write_tensors(
            self.folder / HELD_OUT,
            {"probabilities": probabilities, "labels": labels, "index": index},
        )
        hits, baseline_hits = (
            hit_rates(self.folds, predictions, self.dataset.labels)
            for predictions in self.predictions.values()
        )
        accuracy, baseline = float(hits.mean()), float(baseline_hits.mean())
        repeats = sum(map(len, self.folds)) // len(index)
        return Estimate(
            accuracy=accuracy,
            interval=wilson_interval(accuracy, len(index)),
            held_out=len(index),
            labels=len(torch.unique(self.dataset.labeled)),
            unlabeled=self.dataset.image_count,
            folds=len(self.folds) // repeats,
            repeats=repeats,
            steps=self.config.training.steps,
            without_start=self.without_start,
            baseline=Accuracy(accuracy=baseline, interval=wilson_interval(baseline, len(index))),
            gain=compare_paired(hits, baseline_hits),
            per_class={
                name: mean(hits[labels == code]) for code, name in enumerate(self.dataset.classes)
            },
        )


def draw_folds(
    dataset: SemiDataset, digests: list[bytes], seed: int, options: FoldOptions = DEFAULT_FOLDS
) -> list[Tensor]:
    """Positions that each fold holds out; classes are spread evenly, duplicates stay together."""
    labeled = torch.unique(dataset.labeled)
    generator = torch.Generator().manual_seed(seed)
    folds: list[Tensor] = []
    for _ in range(2 if len(labeled) < options.very_few else 1):
        heaps: list[list[int]] = [[] for _ in range(options.folds)]
        turn = 0
        for code in range(dataset.num_classes):
            members = labeled[dataset.labels[labeled] == code]
            groups = group_duplicates(members, digests)
            if len(groups) < 2:
                continue  # a class whose only label is held out could not be learned
            for at in torch.randperm(len(groups), generator=generator).tolist():
                heaps[turn % options.folds] += groups[at]
                turn += 1
        used = heaps if len(labeled) < options.many else heaps[:1]
        folds += [
            torch.tensor(sorted(heap[:: -(-len(heap) // MOST_HELD_OUT)])) for heap in used if heap
        ]
    return folds


def group_duplicates(members: Tensor, digests: list[bytes]) -> list[list[int]]:
    """Positions with equal pixels as one group, every other position as its own."""
    positions: list[int] = members.tolist()
    duplicates = find_exact_duplicates([digests[at] for at in positions])
    groups = [[positions[i] for i in group] for group in duplicates]
    grouped = {at for group in groups for at in group}
    return [*groups, *([at] for at in positions if at not in grouped)]


def without_held_out(dataset: SemiDataset, held_out: Tensor, digests: list[bytes]) -> SemiDataset:
    """The data set without what is held out, which becomes its test set."""
    excluded = {digests[at] for at in held_out.tolist()}
    free = torch.tensor([digest not in excluded for digest in digests])
    labels = dataset.labels.clone()
    labels[held_out] = -1
    labeled = torch.unique(dataset.labeled)
    return balance_classes(
        replace(
            dataset,
            labels=labels,
            labeled=labeled[free[labeled]],
            unlabeled=dataset.unlabeled[free[dataset.unlabeled]],
            test=read_store(dataset.images, held_out),
            test_labels=dataset.labels[held_out],
            benchmark=False,
        )
    )


def predict_held_out(model: Assembly) -> Tensor:
    """The averaged model's probabilities of the fold's test set; the same at every call."""
    with preserve_rng(model.device):
        seed_step(model.config.seed, model.config.training.steps, 0, model.device)
        return model.predict("teacher", model.test_store).float().cpu().contiguous()


def fold_marks(config: ExperimentConfig, dataset: SemiDataset) -> list[str]:
    """What identifies a fold's predictions: settings and data; also as in earlier versions."""
    data_hash = hash_dataset(dataset)
    table = identifying_table(config, name_of)
    # Earlier versions hashed less of the data.
    return [fingerprint({"config": table, "data": part}) for part in (data_hash, data_hash[:32])]


def read_fold(path: Path, marks: list[str]) -> Tensor | None:
    """The predictions of a finished fold; None where there are none, or others."""
    try:
        require_tensors(path)
        with safe_open(path, framework="pt") as file:
            if (file.metadata() or {}).get("mark") not in marks:
                return None
            probabilities: Tensor = file.get_tensor("probabilities")
    except (OSError, ValueError, SafetensorError):
        return None
    usable = probabilities.ndim == 2 and probabilities.isfinite().all()
    return probabilities if usable else None


def mean_by_picture(folds: list[Tensor], predictions: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Positions that were held out, and the mean of the probabilities predicted for each."""
    index, place = torch.unique(torch.cat(folds), return_inverse=True)
    total = torch.zeros(len(index), predictions[0].shape[1])
    total.index_add_(0, place, torch.cat(predictions))
    return index, total / torch.bincount(place)[:, None]


def hit_rates(folds: list[Tensor], predictions: list[Tensor], labels: Tensor) -> Tensor:
    """For each held-out picture, how often it was right."""
    position = torch.cat(folds)
    right = (torch.cat(predictions).argmax(dim=1) == labels[position]).double()
    _, place = torch.unique(position, return_inverse=True)
    count = torch.bincount(place)
    return torch.zeros(len(count), dtype=torch.float64).index_add_(0, place, right) / count


def mean(values: Tensor) -> float | None:
    return float(values.mean()) if len(values) else None
