"""A run in its folder: started, logged, saved, resumed, finished."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import tomli_w
import torch
from torch.nn import functional as F

from fullmatch import distributed
from fullmatch.algorithms import name_of
from fullmatch.config import ExperimentConfig, config_table, fingerprint
from fullmatch.core import Task
from fullmatch.data import ImageStore, Source
from fullmatch.data.quality.fingerprints import outlier_share
from fullmatch.errors import NonFiniteLoss, UserError
from fullmatch.evaluation.scores import compute_scores, finalize_scores, summarize_scores
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.feature_pass import PassOptions
from fullmatch.experiment.identity import changed_data, check_unchanged, hash_dataset, hash_test
from fullmatch.experiment.inputs import (
    RunInputs,
    add_features,
    load_body,
    load_inputs,
    read_inputs,
)
from fullmatch.experiment.leakage import (
    find_learned_test_pictures,
    includes_all_pictures,
    list_unknowns,
    pictures_learned_by,
    read_learned,
)
from fullmatch.experiment.machine import device_name, versions
from fullmatch.experiment.settings import read_config
from fullmatch.storage.checkpoints import (
    Checkpoint,
    CheckpointFacts,
    newest_checkpoint,
    save_checkpoint,
)
from fullmatch.storage.features import Part, PictureFeatures, write_features
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.result import FinalScores, RunResult, StrategyResult
from fullmatch.storage.run_folder import RunFolder
from fullmatch.storage.tensors import write_tensors
from fullmatch.training.health import HealthMonitor, RunContext, TunableSettings, assess
from fullmatch.training.randomness import preserve_rng, seed_step
from fullmatch.training.trainer import Record

# Compares strategies to use a frozen body; returns the settings to train with, and all results.
Chooser = Callable[
    [ExperimentConfig, RunInputs, RunFolder], tuple[ExperimentConfig, tuple[StrategyResult, ...]]
]


class Run(Assembly):
    """One training run in its folder: `records` trains, logs and saves; then `result` is set."""

    result: RunResult

    def __init__(
        self,
        folder: RunFolder,
        config: ExperimentConfig,
        inputs: RunInputs,
        started: str | None = None,
    ) -> None:
        super().__init__(config, inputs.dataset, started, inputs.features)
        self.folder, self.split, self.source = folder, inputs.split, inputs.source
        self.data_hash = hash_dataset(self.dataset)
        self.facts: CheckpointFacts | None = None  # of the checkpoint this run continues
        self.recovery: list[str] = []  # how it was continued; not part of the result
        resumed = read_learned(folder) if started is not None else {}
        self.learned = resumed or pictures_learned_by(self)
        self.leaks = find_learned_test_pictures(self.learned, self.dataset)
        self.notes += [*(finding.message for finding in self.leaks), *list_unknowns(self)]

    def records(self) -> Iterator[Record]:
        """Train to the end, logging every record and saving in between."""
        training = self.config.training
        with self.folder.locked():
            self.write_learned()
            if self.facts is None:
                self.save()  # so that a run killed before the next one can be resumed
            for record in self.trainer.run(until=training.steps):
                if record.metrics:
                    self.log(record)
                due = record.step % training.checkpoint_every == 0
                if due or record.paused or record.step == training.steps:
                    self.save()
                yield record
                if record.paused:
                    return
            # Some predictions are drawn at random: seeded, so that finishing again gives the same.
            with preserve_rng(self.device), self.folder.writing():
                seed_step(self.config.seed, training.steps, 0, self.device)
                self.finish()

    def write_learned(self) -> None:
        if self.learned and not self.folder.learned.exists():
            with self.folder.writing():
                write_tensors(self.folder.learned, self.learned)

    def log(self, record: Record) -> None:
        """Append to metrics.jsonl; raises `NonFiniteLoss` for a NaN loss."""
        line = LogRecord(
            step=record.step,
            metrics=record.metrics,
            seconds=round(self.earlier_seconds + record.seconds, 3),
            evaluation={who: summarize_scores(each) for who, each in record.evaluation.items()},
        )
        with self.folder.writing():
            self.folder.append_record(line)
        if not math.isfinite(record.metrics.get("loss", 0.0)):
            lower = f"--set optimizer.rate={self.config.optimizer.rate / 3:.4g}"
            raise NonFiniteLoss(
                record.step, f": lower the learning rate, such as {lower}, and train again"
            )

    def save(self) -> None:
        state = self.state
        facts = CheckpointFacts(
            step=state.step,
            config=fingerprint(self.table()),
            data=self.data_hash,
            metrics=tuple(state.totals.names),
            metrics_size=self.folder.metrics_size(),
            seconds=self.earlier_seconds + self.trainer.seconds,
            started=self.started or "",
            threads=torch.get_num_threads(),
            versions=versions(),
        )
        with self.folder.writing():
            save_checkpoint(self.folder.checkpoints, state.state_dict(), facts)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue where a checkpoint was saved; refuses one of another run."""
        facts = checkpoint.facts
        name = f"the checkpoint of step {facts.step}"
        if facts.config != fingerprint(self.table()):
            raise UserError(
                f"{self.folder.config} has changed since {name} was saved; restore the old "
                f"settings, or start a new run: fullmatch train --config {self.folder.config} "
                "--out NEW"
            )
        check_unchanged(self.dataset, self.data_hash, facts.data, f"{name} was saved")
        if not includes_all_pictures(self, self.learned):  # the hash covers only a sample
            raise changed_data(self.dataset, f"{name} was saved")
        try:
            self.state.load_state_dict(
                checkpoint.tensors, step=facts.step, metrics=list(facts.metrics)
            )
        except ValueError as error:
            raise UserError(f"{name} does not belong to {self.folder.path}: {error}") from None
        self.facts = facts
        self.recovery.append(f"resumed at step {facts.step}")
        self.folder.truncate_metrics(facts.metrics_size)

    @property
    def earlier_seconds(self) -> float:
        """Of training before this process."""
        return 0.0 if self.facts is None else self.facts.seconds

    @cached_property
    def monitor(self) -> HealthMonitor:
        """Looks for signs of trouble, knowing what is usual for these pictures."""
        counts, optimizer = self.dataset.label_counts, self.config.optimizer
        unlabeled = len(self.dataset.unlabeled) > sum(counts)  # which includes the labeled ones
        own = not self.dataset.benchmark and bool(self.state.algorithm.views.unlabeled)
        context = RunContext(
            num_classes=self.dataset.num_classes,
            steps=self.config.training.steps,
            largest_prior=max(counts) / sum(counts),
            outlier_share=outlier_share(self.dataset) if own and unlabeled else 0.0,
            has_unlabeled=unlabeled,
            settings=TunableSettings.of(self.config.algorithm, optimizer.rate, optimizer.clip),
        )
        monitor = HealthMonitor(context)
        monitor.mark_reported(self.leaks)  # the notes have them already
        return monitor

    @property
    def strategies(self) -> tuple[StrategyResult, ...]:
        """Those that were compared before training."""
        return self.folder.read_strategies() or ()

    def table(self) -> dict[str, Any]:
        return config_table(self.config, name_of)

    def finish(self) -> None:
        """Write the model, the predictions and the result."""
        self.classifier("teacher").save(
            self.folder.model,
            model=self.config.model.name,
            spec=self.table()["algorithm"],
            task=self.task,
        )
        self.write_features()
        records = self.folder.read_records()
        scores = self.score_test(records)
        accuracy = scores["teacher"].top1 if scores else None
        self.result = RunResult(
            algorithm=self.table()["algorithm"],
            data=self.dataset.name,
            classes=tuple(self.dataset.classes),
            labels=sum(self.dataset.label_counts),
            labels_by_class=tuple(self.dataset.label_counts),
            unlabeled=len(self.dataset.unlabeled),
            seed=self.config.seed,
            steps=self.config.training.steps,
            split_hash=self.split.hash if self.split else None,
            config_hash=fingerprint(self.table()),
            data_hash=self.data_hash,
            test_hash=hash_test(self.dataset),
            notes=tuple(self.notes),
            seconds=round(self.earlier_seconds + self.trainer.seconds, 2),
            device=device_name(self.device),
            versions=versions(),
            student=scores.get("student"),
            teacher=scores.get("teacher"),
            strategies=self.strategies,
            health=(*self.leaks, *assess(records, self.monitor.context, accuracy)),
        )
        self.folder.write_result(self.result)

    def write_features(self) -> None:
        """Keep the embeddings of a frozen body, for the report, suggestions and `predict`."""
        if self.features is None:
            return
        dataset, test = self.dataset, self.features.test
        labels = torch.full((len(dataset.images),), -1)
        labels[dataset.labeled] = dataset.labels[dataset.labeled]
        parts = torch.where(labels >= 0, Part.LABELED.value, Part.UNLABELED.value)
        rows, names = [self.features.plain], list_names(dataset.images, "image", dataset.name)
        if test is not None and dataset.test is not None and dataset.test_labels is not None:
            rows.append(test)
            labels = torch.cat([labels, dataset.test_labels])
            parts = torch.cat([parts, torch.full((len(test),), Part.TEST.value)])
            names += list_names(dataset.test, "test image", dataset.name)
        embeddings = torch.cat(rows).float()
        write_features(
            self.folder.features,
            PictureFeatures(
                features=F.normalize(embeddings, dim=1).numpy(),
                parts=parts.numpy().astype("uint8"),
                labels=labels.numpy(),
                names=tuple(names),
                classes=tuple(dataset.classes),
                weights=self.features.model.identity,
                probabilities=self.predict_embeddings("teacher", embeddings).cpu().numpy(),
            ),
        )

    def score_test(self, records: list[LogRecord]) -> dict[str, FinalScores]:
        """Final scores on the test images, whose predictions are saved; empty without any."""
        labels = self.dataset.test_labels
        if labels is None:
            return {}
        probabilities = self.predict_test()
        write_tensors(
            self.folder.predictions,
            {"probabilities": probabilities["teacher"].float(), "labels": labels},
        )
        return {
            who: finalize_scores(compute_scores(each, labels), self.test_curve(records, who))
            for who, each in probabilities.items()
        }

    def test_curve(self, records: list[LogRecord], who: str) -> list[float]:
        """Test accuracies during training, where the protocol looks at them."""
        if not self.dataset.benchmark:
            return []
        return [record.evaluation[who]["top1"] for record in records if record.evaluation]


def start(
    config: ExperimentConfig,
    folder: RunFolder,
    source: Source | None = None,
    accept: Callable[[Run], None] = lambda run: None,
    options: PassOptions = PassOptions(),  # noqa: B008
    choose: Chooser | None = None,
) -> Run:
    """A new run; its folder is made last, so that a wrong setting leaves nothing behind.

    `accept` may refuse what the run is made of before that.
    """
    config, inputs = load_inputs(config, source)
    if config.model.body == "frozen":
        return start_frozen(config, folder, inputs, accept, options, choose)
    run = Run(folder, config, inputs)
    accept(run)
    run.folder = folder.make()
    write_settings(run.folder, config, inputs)
    return run


def start_frozen(
    config: ExperimentConfig,
    folder: RunFolder,
    inputs: RunInputs,
    accept: Callable[[Run], None],
    options: PassOptions,
    choose: Chooser | None = None,
) -> Run:
    """A new run on a frozen body, whose folder is made first: features go there as they come."""
    check_algorithm(config, inputs)
    body = load_body(inputs, config)
    folder = folder.make()
    write_settings(folder, config, inputs)
    options = replace(options, folder=options.folder or folder.feature_cache)
    if choose is not None:
        with folder.writing():
            folder.write_strategies(None)  # so that a run stopped before then compares them too
    try:
        inputs, notes = add_features(inputs, config, options, body)
        if choose is not None:
            config = choose_config(config, inputs, folder, choose)
    except KeyboardInterrupt:  # what is done so far is in the folder, whose number nobody knows yet
        raise KeyboardInterrupt(folder.resume_command) from None
    run = Run(folder, config, inputs)
    run.notes += notes
    accept(run)
    return run


def choose_config(
    config: ExperimentConfig, inputs: RunInputs, folder: RunFolder, choose: Chooser
) -> ExperimentConfig:
    """The settings of the best strategy, which are those of the run from now on."""
    config, strategies = choose(config, inputs, folder)
    write_settings(folder, config, inputs)
    with folder.writing():
        folder.write_strategies(strategies)
    return config


def check_algorithm(config: ExperimentConfig, inputs: RunInputs) -> None:
    """Refuse wrong settings before any work is done."""
    if distributed.processes() > 1:
        raise UserError("model.body = frozen trains in one process; start it without torchrun")
    dataset = inputs.dataset
    config.algorithm.build(
        Task(
            num_classes=dataset.num_classes,
            num_labeled=len(dataset.labeled),
            num_unlabeled=len(dataset.unlabeled),
            class_prior=dataset.class_prior,
            image=(2, 1, 1),
            features=2,
            feature_map=(2, 1, 1),
        )
    )


def write_settings(folder: RunFolder, config: ExperimentConfig, inputs: RunInputs) -> None:
    with folder.writing():
        if inputs.split is not None:
            inputs.split.save(folder.split)
        folder.write_text(folder.config, tomli_w.dumps(config_table(config, name_of)))


def resume(
    folder: RunFolder,
    source: Source | None = None,
    options: PassOptions = PassOptions(),  # noqa: B008
    choose: Chooser | None = None,
) -> Run:
    """A run continued from its newest undamaged checkpoint."""
    config = read_config(folder)
    with folder.locked():
        checkpoint, damaged = newest_checkpoint(folder.checkpoints)
        if checkpoint is None and (damaged or folder.metrics_size()):
            raise UserError(
                f"{folder.path} has no usable checkpoint ({'; '.join(damaged) or 'all are gone'}); "
                f"start again with: fullmatch train --config {folder.config} --out NEW"
            )
        if checkpoint is not None:
            torch.set_num_threads(checkpoint.facts.threads)  # sums depend on it
        # A checkpoint holds the trained weights; the file of the initial ones may be gone.
        started = None if checkpoint is None else checkpoint.facts.started
        options = replace(options, folder=options.folder or folder.feature_cache)
        inputs, _ = add_features(read_inputs(folder, config, source), config, options)
        if checkpoint is None and choose is not None and folder.read_strategies() is None:
            config = choose_config(config, inputs, folder, choose)
        run = Run(folder, config, inputs, started)
        run.recovery = damaged
        if checkpoint is None:
            run.recovery.append("it was stopped before anything was saved: starting at step 0")
        else:
            run.restore(checkpoint)
    return run


def list_names(images: ImageStore, kind: str, folder: str) -> list[str]:
    """Files as seen from the data's folder, or numbers where there are none."""
    if not images.paths:
        return [f"{kind} {number}" for number in range(len(images))]
    marker = f"/{folder}/"
    return [path.rpartition(marker)[2] if marker in path else path for path in images.paths]
