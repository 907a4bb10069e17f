"""A run in its folder: started, logged, saved, resumed, finished."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cached_property
from typing import Any

import tomli_w
import torch
from torch import Tensor

from fullmatch.algorithms import name_of
from fullmatch.config import ExperimentConfig, config_table, fingerprint
from fullmatch.data import SemiDataset, Source, Split
from fullmatch.data.quality.cleaning import prepared
from fullmatch.data.quality.fingerprints import foreign_share
from fullmatch.errors import UserError
from fullmatch.evaluation.scores import scores
from fullmatch.evaluation.summary import summary
from fullmatch.experiment.build import Assembly, device_name, versions
from fullmatch.experiment.inputs import (
    changed,
    hash_of,
    hash_of_test,
    load_source,
    refuse_changed,
    said_in_full,
    split_of,
)
from fullmatch.experiment.leakage import all_learned, doubts, learned_by, learned_from, seen_in_test
from fullmatch.experiment.settings import config_of
from fullmatch.storage import checkpoints as checkpoint
from fullmatch.storage.run_folder import RunFolder
from fullmatch.storage.tensors import write_tensors
from fullmatch.training.health import Knobs, Watch
from fullmatch.training.randomness import borrowed, seed_step
from fullmatch.training.trainer import Record


class Run(Assembly):
    """One training run in its folder: `records` trains, logs and saves; then `result` is there."""

    source: Source  # as found, before any pictures were left out; for whoever goes on with them

    def __init__(
        self,
        folder: RunFolder,
        config: ExperimentConfig,
        dataset: SemiDataset,
        split: Split | None,
        started: str | None = None,
    ) -> None:
        super().__init__(config, dataset, started)
        self.folder, self.split = folder, split
        self.data_hash = hash_of(dataset)
        self.facts: dict[str, Any] = {}  # of the checkpoint this run continues
        self.recovery: list[str] = []  # how it was continued; no part of the result
        known = learned_by(folder) if started is not None else {}
        self.learned = known or learned_from(self)
        self.seen = seen_in_test(self.learned, dataset)
        self.notes += [*(finding.words for finding in self.seen), *doubts(self)]

    def records(self) -> Iterator[Record]:
        """Train to the end, logging every record and saving in between."""
        training = self.config.training
        with self.folder.locked():
            if self.learned and not self.folder.learned.exists():
                with self.folder.writing():
                    write_tensors(self.folder.learned, self.learned)
            if not self.facts:
                self.save()  # so that a run killed at once can be resumed too
            for record in self.trainer.run(until=training.steps):
                if record.metrics:
                    self.log(record)
                saved = record.step % training.checkpoint_every == 0
                if saved or record.paused or record.step == training.steps:
                    self.save()
                yield record
                if record.paused:
                    return
            # Some predictions are drawn: the same at every end of this run, and only borrowed.
            with borrowed(self.device), self.folder.writing():
                seed_step(self.config.seed, training.steps, 0, self.device)
                self.finish()

    def log(self, record: Record) -> None:
        """Append to metrics.jsonl; a loss that is no number stops the run."""
        evaluation = {name: found.summary() for name, found in record.evaluation.items()}
        line: dict[str, Any] = {"step": record.step, **record.metrics}
        if evaluation:
            line["evaluation"] = evaluation
        with self.folder.writing():
            self.folder.append(line | {"seconds": round(self.seconds + record.seconds, 3)})
        loss = record.metrics.get("loss", 0.0)
        if loss != loss or loss in (float("inf"), float("-inf")):
            raise UserError(
                f"the loss is no longer a number at step {record.step}: lower the rate, such as "
                f"--set optimizer.rate={self.config.optimizer.rate / 3:.4g}, and train again"
            )

    def save(self) -> None:
        state = self.state
        facts = {
            "config": fingerprint(self.table()),
            "data": self.data_hash,
            "metrics": state.totals.names,
            "metrics_size": self.folder.metrics_size(),
            "seconds": self.seconds + self.trainer.seconds,
            "started": self.started,
            "threads": torch.get_num_threads(),
            "versions": versions(),
        }
        with self.folder.writing():
            checkpoint.save(self.folder.checkpoints, state.step, state.state_dict(), facts)

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Continue where a checkpoint was saved; refuses one of another run."""
        at = f"the checkpoint of step {facts['step']}"
        if facts["config"] != fingerprint(self.table()):
            raise UserError(
                f"{self.folder.config} is not what it was when {at} was saved; put the old "
                f"settings back, or start anew: fullmatch train --config {self.folder.config} "
                "--out NEW"
            )
        refuse_changed(self.dataset, self.data_hash, facts["data"], f"{at} was saved")
        if not all_learned(self, self.learned):  # the hash knows only some of many pictures
            raise changed(self.dataset, f"{at} was saved")
        try:
            self.state.load_state_dict(tensors, step=facts["step"], metrics=facts["metrics"])
        except ValueError as error:
            raise UserError(f"{at} does not belong to {self.folder.path}: {error}") from None
        self.facts = facts
        self.recovery.append(f"resumed at step {facts['step']}")
        self.folder.cut_metrics(facts["metrics_size"])

    @property
    def seconds(self) -> float:
        """Of training before this process."""
        return float(self.facts.get("seconds", 0.0))

    @cached_property
    def watch(self) -> Watch:
        """Who knows what is usual for these pictures, and so what is not."""
        counts, optimizer = self.dataset.label_counts, self.config.optimizer
        unlabeled = len(self.dataset.unlabeled) > sum(counts)  # which are among them
        own = not self.dataset.benchmark and bool(self.state.algorithm.views.unlabeled)
        watch = Watch(
            self.dataset.num_classes,
            steps=self.config.training.steps,
            largest_prior=max(counts) / sum(counts),
            foreign=foreign_share(self.dataset) if own and unlabeled else 0.0,
            unlabeled=unlabeled,
            knobs=Knobs.of(self.config.algorithm, optimizer.rate, optimizer.clip),
        )
        watch.untold(self.seen)  # notes tell it at once
        return watch

    def table(self) -> dict[str, Any]:
        return config_table(self.config, name_of)

    def finish(self) -> None:
        """Write the model and the result."""
        records = self.folder.records()
        self.classifier("teacher").save(
            self.folder.model,
            model=self.config.model.name,
            spec=self.table()["algorithm"],
            task=self.task,
        )
        self.result: dict[str, Any] = {
            "algorithm": self.table()["algorithm"],
            "data": self.dataset.name,
            "labels": sum(self.dataset.label_counts),
            "labels_by_class": self.dataset.label_counts,
            "unlabeled": len(self.dataset.unlabeled),
            "classes": list(self.dataset.classes),
            "seed": self.config.seed,
            "steps": self.config.training.steps,
            "split": self.split.hash if self.split else None,
            "config": fingerprint(self.table()),
            "data_hash": self.data_hash,
            "test_hash": hash_of_test(self.dataset),
            "notes": self.notes,
            "seconds": round(self.seconds + self.trainer.seconds, 2),
            "device": device_name(self.device),
            "versions": versions(),
        }
        labels = self.dataset.test_labels
        if labels is not None:
            found = self.on_the_test()
            probs = found["teacher"].float()
            write_tensors(self.folder.predictions, {"probabilities": probs, "labels": labels})
            final = {who: scores(each, labels).as_dict() for who, each in found.items()}
            self.result |= summary(final, records, self.dataset.benchmark)
        accuracy = self.result.get("teacher", {}).get("last")
        standing = [*self.seen, *self.watch.standing(records, accuracy)]
        self.result["health"] = [asdict(finding) for finding in standing]
        self.folder.write_result(self.result)


def start(
    config: ExperimentConfig,
    folder: RunFolder,
    source: Source | None = None,
    accept: Callable[[Run], None] = lambda run: None,
) -> Run:
    """A new run; its folder is made last, so that a wrong setting leaves nothing behind.

    `accept` may refuse what the run is made of before that.
    """
    source = load_source(config) if source is None else source
    split = split_of(config, source)
    config = said_in_full(config, split)
    dataset = prepared(SemiDataset.of(source, split), flip=config.data.flip)
    run = Run(folder, config, dataset, split)
    run.source = source
    accept(run)
    run.folder = folder = folder.make()
    with folder.writing():
        if split is not None:
            split.save(folder.split)
        folder.write(folder.config, tomli_w.dumps(run.table()))
    return run


def resume(folder: RunFolder, source: Source | None = None) -> Run:
    """A run continued from its newest whole checkpoint; says which, and what it passed over."""
    config = config_of(folder)
    with folder.locked():
        state, damaged = checkpoint.newest(folder.checkpoints)
        if state is None and (damaged or folder.metrics_size()):
            raise UserError(
                f"{folder.path} has no whole checkpoint ({'; '.join(damaged) or 'all are gone'}); "
                f"start again with: fullmatch train --config {folder.config} --out NEW"
            )
        if state is not None:
            torch.set_num_threads(state[1]["threads"])
        source = load_source(config) if source is None else source
        split = Split.load(folder.split) if folder.split.exists() else split_of(config, source)
        dataset = prepared(SemiDataset.of(source, split), flip=config.data.flip)
        # A checkpoint holds what became of the weights it started from, which may be gone by now.
        started = None if state is None else state[1].get("started", "")
        run = Run(folder, config, dataset, split, started)
        run.source, run.recovery = source, damaged
        if state is None:
            run.recovery.append("it was stopped before anything was saved: starting at step 0")
        else:
            run.restore(*state)
    return run
