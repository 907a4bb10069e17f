"""How good is it really, without a test folder? Labels held out in turn, and the model asked.

With few labels every one of them is held out once (twice when there are very few); with many, a
fifth of them is. What is held out leaves the unlabeled pictures too, and so do its exact copies:
a model meets new pictures later, and must not have practised on these. Copies are held out
together. Each part is trained with and without the unlabeled pictures, for fewer steps than the
final model, which also has more labels: the estimate is rather too low than too high.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from fullmatch.algorithms import Supervised, name_of
from fullmatch.config import ExperimentConfig, config_table, fingerprint
from fullmatch.data import SemiDataset, TensorStore
from fullmatch.data.quality.cleaning import balanced
from fullmatch.data.quality.duplicates import exact_groups
from fullmatch.data.quality.fingerprints import digests_of
from fullmatch.evaluation.paired import paired, spoken
from fullmatch.evaluation.summary import wilson
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.inputs import hash_of
from fullmatch.experiment.planning import FOLDS, LEAST, MANY, VERY_FEW, shorter
from fullmatch.experiment.presets import with_steps
from fullmatch.storage.tensors import write_tensors
from fullmatch.training.randomness import borrowed, seed_step

MOST_HELD = 2000  # more add nothing to the estimate


@dataclass(frozen=True)
class Progress:
    """Where the estimate stands."""

    part: int  # of `parts`, from 0
    parts: int
    alone: bool  # the labels alone are being trained
    step: int
    steps: int

    @property
    def done(self) -> float:
        """The share of all that is done."""
        return (self.part + (self.alone + self.step / self.steps) / 2) / self.parts


class Estimate:
    """Like a run: `records` does the work, then `result` is there; finished parts are kept."""

    def __init__(self, config: ExperimentConfig, dataset: SemiDataset, folder: Path) -> None:
        self.dataset, self.folder = dataset, folder
        self.digests = digests_of(dataset.images)
        self.parts = held_out(dataset, self.digests, config.seed)
        steps = shorter(config.training.steps, LEAST)
        # Earlier weights may have learned from the labels that are held out here.
        self.anew = config.model.start is not None
        afresh = replace(config, baseline=False, model=replace(config.model, start=None))
        self.config = with_steps(afresh, steps)
        self.result: dict[str, Any] = {}
        self.found: dict[bool, list[Tensor]] = {False: [], True: []}

    def records(self) -> Iterator[Progress]:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.found = {False: [], True: []}
        for part, held in enumerate(self.parts):
            for alone in (False, True):
                yield from self.trained(part, held, alone)
        self.finish()

    def trained(self, part: int, held: Tensor, alone: bool) -> Iterator[Progress]:
        config = replace(self.config, algorithm=Supervised()) if alone else self.config
        dataset = part_of(self.dataset, held, self.digests)
        path = self.folder / f"{part}-{'labels-only' if alone else 'all'}.safetensors"
        data = hash_of(dataset)
        mark, older = (
            fingerprint({"config": config_table(config, name_of), "data": kept})
            for kept in (data, data[:32])  # earlier versions hashed less
        )
        probs = saved(path, {mark, older})
        if probs is None:
            model = Assembly(config, dataset)
            for record in model.trainer.run(until=config.training.steps):
                yield Progress(part, len(self.parts), alone, record.step, config.training.steps)
            with borrowed(model.device):
                seed_step(config.seed, config.training.steps, 0, model.device)
                probs = model.predict("teacher", model.test_store()).float().cpu().contiguous()
            save(path, {"probabilities": probs}, mark)
        self.found[alone].append(probs)

    def finish(self) -> None:
        """All parts together: accuracy, interval, and what the unlabeled pictures did."""
        if not self.parts:
            self.result = {
                "sentence": "How good it is, is not known: no class has two labels, so none can be "
                "held out. Label more pictures of each class, or add test/CLASS/*."
            }
            return
        index, ours = pooled(self.parts, self.found[False])
        labels = self.dataset.labels[index]
        save(
            self.folder / "held-out.safetensors",
            {"probabilities": ours, "labels": labels, "index": index},
        )
        # Of each picture, the share of its repetitions that were right.
        hits = [shares(self.parts, found, self.dataset.labels) for found in self.found.values()]
        accuracy, alone = (float(each.mean()) for each in hits)
        gain = paired(hits[0], hits[1])
        classes = self.dataset.classes
        per_class = {name: mean(hits[0][labels == code]) for code, name in enumerate(classes)}
        repeats = sum(map(len, self.parts)) // len(index)
        self.result = {
            "held_out": len(index),
            "labels": len(torch.unique(self.dataset.labeled)),
            "unlabeled": len(self.dataset.unlabeled),
            "parts": len(self.parts) // repeats,
            "repeats": repeats,
            "steps": self.config.training.steps,
            "anew": self.anew,
            "accuracy": accuracy,
            "interval": wilson(accuracy, len(index)),
            "labels_only": {"accuracy": alone, "interval": wilson(alone, len(index))},
            "gain": gain,
            "per_class": per_class,
            "not_measured": [name for name, share in per_class.items() if share is None],
        }
        self.result["sentence"] = spoken(self.result)


def estimate(config: ExperimentConfig, dataset: SemiDataset, folder: Path) -> dict[str, Any]:
    """The whole estimate at once; its probabilities lie in the folder's held-out.safetensors."""
    found = Estimate(config, dataset, folder)
    for _ in found.records():
        pass
    return found.result


def held_out(dataset: SemiDataset, digests: list[bytes], seed: int) -> list[Tensor]:
    """Positions that each part holds out; classes are spread evenly, copies stay together."""
    labeled = torch.unique(dataset.labeled)
    generator = torch.Generator().manual_seed(seed)
    few = len(labeled) < MANY
    parts: list[Tensor] = []
    for _ in range(2 if len(labeled) < VERY_FEW else 1):
        heaps: list[list[int]] = [[] for _ in range(FOLDS)]
        turn = 0
        for code in range(dataset.num_classes):
            members = labeled[dataset.labels[labeled] == code]
            groups = families(members, digests)
            if len(groups) < 2:
                continue  # a class whose only label is held out could not be learned
            for at in torch.randperm(len(groups), generator=generator).tolist():
                heaps[turn % FOLDS] += groups[at]
                turn += 1
        kept = heaps if few else heaps[:1]
        parts += [
            torch.tensor(sorted(heap[:: -(-len(heap) // MOST_HELD)])) for heap in kept if heap
        ]
    return parts


def families(members: Tensor, digests: list[bytes]) -> list[list[int]]:
    """Positions with the same pixels together, all others alone."""
    positions: list[int] = members.tolist()
    same = exact_groups([digests[at] for at in positions])
    groups = [[positions[i] for i in group] for group in same]
    together = {at for group in groups for at in group}
    return [*groups, *([at] for at in positions if at not in together)]


def part_of(dataset: SemiDataset, held: Tensor, digests: list[bytes]) -> SemiDataset:
    """The data set without what is held out, which becomes its test."""
    seen = {digests[at] for at in held.tolist()}
    free = torch.tensor([digest not in seen for digest in digests])
    labels = dataset.labels.clone()
    labels[held] = -1
    kept = torch.unique(dataset.labeled)
    return balanced(
        replace(
            dataset,
            labels=labels,
            labeled=kept[free[kept]],
            unlabeled=dataset.unlabeled[free[dataset.unlabeled]],
            test=TensorStore(dataset.images.read(held).cpu()),
            test_labels=dataset.labels[held],
            benchmark=False,
        )
    )


def pooled(parts: list[Tensor], found: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Positions that were held out, and the mean of the probabilities that each was given."""
    index, place = torch.unique(torch.cat(parts), return_inverse=True)
    total = torch.zeros(len(index), found[0].shape[1]).index_add_(0, place, torch.cat(found))
    return index, total / torch.bincount(place)[:, None]


def shares(parts: list[Tensor], found: list[Tensor], labels: Tensor) -> Tensor:
    """Of each held-out picture, how often it was right."""
    position = torch.cat(parts)
    right = (torch.cat(found).argmax(dim=1) == labels[position]).double()
    _, place = torch.unique(position, return_inverse=True)
    count = torch.bincount(place)
    return torch.zeros(len(count), dtype=torch.float64).index_add_(0, place, right) / count


def mean(values: Tensor) -> float | None:
    return float(values.mean()) if len(values) else None


def save(path: Path, tensors: dict[str, Tensor], mark: str = "") -> None:
    write_tensors(path, tensors, mark=mark)


def saved(path: Path, marks: set[str]) -> Tensor | None:
    """The probabilities of a part that was finished earlier with the same settings and data."""
    try:
        with safe_open(path, framework="pt") as file:
            kept: Tensor = file.get_tensor("probabilities")
            return kept if file.metadata().get("mark") in marks else None
    except (OSError, SafetensorError):
        return None
