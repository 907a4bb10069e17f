"""A run in its folder: started, logged, saved, resumed, finished."""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from fullmatch import distributed
from fullmatch.algorithms import name_of
from fullmatch.config import ExperimentConfig, config_table, fingerprint, identifying_table
from fullmatch.core import as_spec
from fullmatch.data.quality.fingerprints import outlier_share
from fullmatch.errors import NonFiniteLoss, UserError
from fullmatch.evaluation.scores import compute_scores, finalize_scores, summarize_scores
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.identity import changed_data, check_unchanged, hash_dataset, hash_test
from fullmatch.experiment.inputs import RunInputs
from fullmatch.experiment.leakage import (
    find_learned_test_pictures,
    includes_all_pictures,
    list_unknowns,
    pictures_learned_by,
    read_learned,
)
from fullmatch.experiment.machine import device_name, versions
from fullmatch.experiment.open_set import score_open_set
from fullmatch.experiment.run_features import gather_features
from fullmatch.storage.checkpoints import Checkpoint, CheckpointFacts, save_checkpoint
from fullmatch.storage.features import PictureFeatures, write_features
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.result import FinalScores, OpenSetScores, RunResult, StrategyResult
from fullmatch.storage.run_folder import RunFolder
from fullmatch.storage.tensors import write_tensors
from fullmatch.training.health import HealthMonitor, RunContext, TunableSettings, assess
from fullmatch.training.randomness import preserve_rng, seed_step
from fullmatch.training.step import autocast
from fullmatch.training.stopping import StoppingRule
from fullmatch.training.trainer import Record


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
        self.stopping_rules: list[StoppingRule] = []
        self.last_step = config.training.steps
        self.leaks = find_learned_test_pictures(self.learned, self.dataset)
        self.notes += [*(finding.message for finding in self.leaks), *list_unknowns(self)]

    def records(self) -> Iterator[Record]:
        """Train to the end, logging every record and saving in between."""
        training = self.config.training
        with self.folder.locked() if distributed.is_first() else nullcontext():
            self.write_learned()
            if self.facts is None:
                self.save()  # so that a run killed before the next one can be resumed
            for record in self.trainer.run(until=self.last_step):
                if record.metrics:
                    self.log(record)
                stopped = not record.paused and self.stops_early(record)
                due = record.step % training.checkpoint_every == 0
                if due or stopped or record.paused or record.step == training.steps:
                    self.save()
                yield record
                if record.paused:
                    return
                if stopped:
                    break
            # Some predictions are drawn at random: seeded, so that finishing again gives the same.
            self.check_finite()
            with preserve_rng(self.device), self.folder.writing():
                seed_step(self.config.seed, self.state.step, 0, self.device)
                self.finish()

    def stops_early(self, record: Record) -> bool:
        """Whether a rule ends the training here; the result says which one."""
        reasons = (rule.reason_to_stop(record) for rule in self.stopping_rules)
        # Rules may look at the time, which is not the same in every process.
        reason = distributed.on_first(lambda: next(filter(None, reasons), None))
        if reason is None or record.step >= self.config.training.steps:
            return False
        self.note_early_stop(reason)
        return True

    def end_here(self, reason: str) -> None:
        """Train no further: `records` finishes the run with what it has learned so far."""
        if self.state.step == 0:
            raise UserError(
                f"{self.folder.path} was not trained yet, so there is nothing to finish; train it "
                f"with: {self.folder.resume_command}"
            )
        if self.state.step < self.config.training.steps:
            self.last_step = self.state.step
            self.note_early_stop(reason)

    def note_early_stop(self, reason: str) -> None:
        steps = self.config.training.steps
        self.notes.append(f"stopped after {self.state.step} of {steps} steps: {reason}")

    def write_learned(self) -> None:
        if distributed.is_first() and self.learned and not self.folder.learned.exists():
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
        if distributed.is_first():
            with self.folder.writing():
                self.folder.append_record(line)
        if not math.isfinite(record.metrics.get("loss", 0.0)):
            raise self.diverged(record.step)

    def check_finite(self) -> None:
        """`NonFiniteLoss` where the last step, which no loss follows, has made weights NaN."""
        floating = (tensor for _, tensor in self.state.tensors() if tensor.is_floating_point())
        if not all(bool(tensor.isfinite().all()) for tensor in floating):
            raise self.diverged(self.state.step)

    def diverged(self, step: int) -> NonFiniteLoss:
        lower = f"--set optimizer.rate={self.config.optimizer.rate / 3:.4g}"
        return NonFiniteLoss(step, f": lower the learning rate, such as {lower}, and train again")

    def save(self) -> None:
        state = self.state
        state.totals.collect()
        if not distributed.is_first():
            return
        facts = CheckpointFacts(
            step=state.step,
            config=self.config_hash,
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
        if facts.config != self.config_hash:
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
        if facts.step > self.config.training.steps:
            raise UserError(f"{name} does not belong to {self.folder.path}: it has fewer steps")
        self.facts = facts
        self.recovery.append(f"resumed at step {facts.step}")
        if distributed.is_first():
            self.folder.truncate_metrics(facts.metrics_size)

    @property
    def earlier_seconds(self) -> float:
        """Of training before this process."""
        return 0.0 if self.facts is None else self.facts.seconds

    @cached_property
    def monitor(self) -> HealthMonitor:
        """Looks for signs of trouble, knowing what is usual for these pictures."""
        counts, optimizer = self.dataset.label_counts, self.config.optimizer
        unlabeled = self.dataset.image_count > sum(counts)
        own = not self.dataset.benchmark and bool(self.state.algorithm.views.unlabeled)
        context = RunContext(
            num_classes=self.dataset.num_classes,
            steps=self.config.training.steps,
            largest_prior=max(counts) / sum(counts),
            outlier_share=outlier_share(self.dataset) if own and unlabeled else 0.0,
            has_unlabeled=unlabeled,
            settings=TunableSettings.of(self.config.algorithm, optimizer.rate, optimizer.clip),
            limit=as_spec(self.config.algorithm).falling_limit(self.config.training.steps),
        )
        monitor = HealthMonitor(context)
        monitor.mark_reported(self.leaks)  # the notes have them already
        return monitor

    @property
    def strategies(self) -> tuple[StrategyResult, ...]:
        """Those that were compared before training."""
        return self.folder.read_strategies() or ()

    @property
    def config_hash(self) -> str:
        return fingerprint(identifying_table(self.config, name_of))

    def table(self) -> dict[str, Any]:
        return config_table(self.config, name_of)

    def finish(self) -> None:
        """Predict the test images in all processes; write everything in the first."""
        features = gather_features(self)
        tested = {} if self.dataset.test_labels is None else self.predict_test()
        self.result = distributed.on_first(lambda: self.write_outputs(features, tested))

    def write_outputs(
        self, features: PictureFeatures | None, tested: dict[str, Tensor]
    ) -> RunResult:
        """Write the model, the predictions and the result."""
        self.classifier("teacher").save(
            self.folder.model,
            model=self.config.model.name,
            spec=self.table()["algorithm"],
            task=self.task,
        )
        if features is not None:
            write_features(self.folder.features, features)
        records = self.folder.read_records()
        scores = self.score_test(records, tested)
        accuracy = scores["teacher"].top1 if scores else None
        result = RunResult(
            algorithm=self.table()["algorithm"],
            data=self.dataset.name,
            classes=tuple(self.dataset.classes),
            labels=sum(self.dataset.label_counts),
            labels_by_class=tuple(self.dataset.label_counts),
            unlabeled=self.dataset.image_count,
            seed=self.config.seed,
            steps=self.state.step,
            split_hash=self.split.hash if self.split else None,
            config_hash=self.config_hash,
            data_hash=self.data_hash,
            test_hash=hash_test(self.dataset),
            notes=tuple(self.notes),
            seconds=round(self.earlier_seconds + self.trainer.seconds, 2),
            device=device_name(self.device),
            versions=versions(),
            student=scores.get("student"),
            teacher=scores.get("teacher"),
            unknown_classes=self.dataset.unknown_classes,
            open_set=self.score_open_set(),
            strategies=self.strategies,
            health=(*self.leaks, *assess(records, self.monitor.context, accuracy)),
        )
        self.folder.write_result(result)
        return result

    def score_test(
        self, records: list[LogRecord], probabilities: dict[str, Tensor]
    ) -> dict[str, FinalScores]:
        """Final scores on the test images, whose predictions are saved; empty without any."""
        labels = self.dataset.test_labels
        if labels is None:
            return {}
        write_tensors(
            self.folder.predictions,
            {"probabilities": probabilities["teacher"].float(), "labels": labels},
        )
        return {
            who: finalize_scores(compute_scores(each, labels), self.test_curve(records, who))
            for who, each in probabilities.items()
        }

    def score_open_set(self) -> OpenSetScores | None:
        """How well the averaged model recognizes test images of unknown classes."""
        with autocast(self.device, self.bf16):
            return score_open_set(self.classifier("teacher").eval(), self.dataset, self.device)

    def test_curve(self, records: list[LogRecord], who: str) -> list[float]:
        """Test accuracies during training, where the protocol looks at them."""
        if not self.dataset.benchmark:
            return []
        return [record.evaluation[who]["top1"] for record in records if who in record.evaluation]
