"""From a config to everything a step needs: data, algorithm and training meet here."""

import copy
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from fullmatch import distributed
from fullmatch.algorithms import name_of
from fullmatch.algorithms.self_supervised import FindOtherView
from fullmatch.augment.views import Augmenter
from fullmatch.config import ExperimentConfig, fingerprint, identifying_table
from fullmatch.core import (
    Appearance,
    Batch,
    DrawnSets,
    Network,
    Objective,
    Task,
    Views,
    as_spec,
)
from fullmatch.data import SemiDataset
from fullmatch.data.feed import Feed, RawBatch, build_feed
from fullmatch.data.stores.embeddings import EmbeddingStore
from fullmatch.errors import UserError
from fullmatch.experiment.feature_pass import FrozenFeatures
from fullmatch.experiment.identity import hash_dataset
from fullmatch.experiment.machine import choose_device, device_name, versions
from fullmatch.experiment.probe import fit_initial_head
from fullmatch.experiment.recipe import apply_training_settings
from fullmatch.experiment.student_and_teacher import EVALUATION_BATCH, StudentAndTeacher
from fullmatch.experiment.warm_start import load_initial_weights
from fullmatch.models import build_network, feature_map_shape
from fullmatch.models.frozen import HeadNetwork, TunedNetwork
from fullmatch.models.kernels import register_operators, synchronize_batch_norms
from fullmatch.models.layers import layer_scales
from fullmatch.models.weights import use_published_normalization
from fullmatch.training.cached_views import CachedViews
from fullmatch.training.execution import (
    RecordedStep,
    compile_augmentation,
    compile_loss,
    explain_out_of_memory,
    resolve_execution,
    resolve_precision,
)
from fullmatch.training.optimizer import records_steps
from fullmatch.training.phases import MAIN, Phase, PhasedStep, Phases
from fullmatch.training.process import apply_process_settings
from fullmatch.training.randomness import preserve_rng
from fullmatch.training.schedule import Schedule, ema_decay, evaluation_interval, learning_rate
from fullmatch.training.state import TrainState
from fullmatch.training.statistics import measure_statistics
from fullmatch.training.step import Augmentation, Loss, TrainingStep, share_loss
from fullmatch.training.trainer import Trainer

StepParts = tuple[Callable[[RawBatch], Batch], Callable[[Batch, Tensor], Objective]]


class Assembly(StudentAndTeacher):
    """State, step and trainer of a config on a data set; knows nothing of files.

    `started` is a sentence about the weights that the run started from, if an earlier process has
    loaded them: the state to be restored holds what became of them, and they are not read again.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        dataset: SemiDataset,
        started: str | None = None,
        features: FrozenFeatures | None = None,
    ) -> None:
        self.config, self.dataset, self.started = config, dataset, started
        self.features = features
        self.device = choose_device()
        self.notes: list[str] = list(dataset.notes)
        if distributed.world_size() > 1:
            distributed.require_same(
                {
                    "settings": fingerprint(identifying_table(config, name_of)),
                    "pictures or labels": hash_dataset(dataset),
                    "versions": str(versions()),
                }
            )
        with preserve_rng(self.device):
            torch.manual_seed(config.seed)
            self.build()

    def build(self) -> None:
        """All parts, in this order: the first weights are drawn by the network, then by heads."""
        training = self.config.training
        apply_process_settings(
            self.device, threads=training.threads, deterministic=training.deterministic
        )
        student = self.build_network()
        self.task = self.describe_task(student)
        self.state = self.build_state(student)
        feed = self.build_feed()
        self.steps = self.build_steps(feed)
        self.trainer = self.build_trainer(feed)
        if self.config.training.pseudo_labels == "teacher" and not self.started:
            self.measure_statistics()

    def build_network(self) -> Network:
        """The network with the weights that it starts from, and the views that fit them."""
        if self.config.model.body != "trained":
            return self.build_on_pretrained()
        model = self.config.model
        student = build_network(
            model.name,
            self.dataset.num_classes,
            self.view_shape(),
            pretrained=model.pretrained and self.started is None,
            norm_momentum=model.norm_momentum,
            torchssl_blocks=model.torchssl_blocks,
            fit=True,
        )
        if self.started is None:
            self.started = load_initial_weights(
                model, student, self.dataset.classes, self.dataset.unknown_classes
            )
        self.notes += [self.started] if self.started else []
        appearance = self.dataset.appearance
        if model.pretrained or model.start or model.weights:
            appearance = use_published_normalization(appearance, student)
        self.augment = self.build_views(appearance)
        if distributed.world_size() > 1:
            eager = self.config.training.execution != "compiled"  # which `auto` is not
            by_torch = self.device.type == "cuda" and eager
            unsynchronized = synchronize_batch_norms(student, by_torch=by_torch)
            kept = f"{unsynchronized} norm layers of {model.name} are not synchronized"
            self.notes += [kept] if unsynchronized else []
        return student

    def build_views(self, appearance: Appearance) -> Augmenter:
        config = self.config
        return Augmenter(appearance, config.data.strong, config.augment).to(self.device)

    def build_on_pretrained(self) -> Network:
        """Only the head where the body is frozen: its embeddings were computed before."""
        features = self.features
        if features is None:
            body = self.config.model.body
            raise UserError(f"model.body = {body} only works with fullmatch train; leave it out")
        self.augment = self.build_views(features.model.appearance)
        student = HeadNetwork(features.training.shape[2], self.dataset.num_classes)
        if self.started is None:
            self.started = features.model.note
            fit_initial_head(student, self.config, self.dataset, features)
        self.notes += [self.started] if self.started else []
        return student if self.frozen else tune_from(features, student)

    def describe_task(self, student: Network) -> Task:
        image = self.view_shape()
        if self.frozen and self.features is not None:
            image = (self.features.training.shape[2], 1, 1)
        feature_map = feature_map_shape(student, image)
        return Task(
            num_classes=self.dataset.num_classes,
            num_labeled=len(self.dataset.labeled),
            num_unlabeled=len(self.dataset.unlabeled),
            class_prior=self.dataset.class_prior,
            image=image,
            features=feature_map[0],
            feature_map=feature_map,
            batch_prior=self.dataset.batch_prior,
        )

    def build_state(self, student: Network) -> TrainState:
        algorithm = self.config.algorithm.build(self.task)
        apply_training_settings(algorithm, self.config.training)
        optimizer = self.config.optimizer
        self_supervised = self.phases.start > 0
        return TrainState(
            student,
            algorithm,
            optimizer=optimizer,
            device=self.device,
            rate_scales=layer_scales(student, optimizer.layer_decay),
            pretext=FindOtherView(self.task) if self_supervised else None,
        )

    @property
    def phases(self) -> Phases:
        training = self.config.training
        return Phases(training.steps, training.curriculum, training.self_supervised)

    def build_feed(self) -> Feed:
        config, training = self.config, self.config.training
        dataset = self.dataset
        if self.frozen and self.features is not None:
            rows = self.features.training[:, :, None]
            dataset = replace(dataset, images=EmbeddingStore(rows))
        sets = as_spec(config.algorithm).arrange(
            DrawnSets(
                dataset.labeled,
                dataset.labels[dataset.labeled],
                dataset.unlabeled,
                training.batch,
                training.unlabeled_batch(config.algorithm.ratio),
            )
        )
        labels = dataset.labels.index_put((sets.labeled,), sets.labels)
        feed = build_feed(
            replace(dataset, labels=labels, labeled=sets.labeled, unlabeled=sets.unlabeled),
            labeled_batch=sets.labeled_batch,
            unlabeled_batch=sets.unlabeled_batch,
            seed=config.seed,
            device=self.device,
            repeat_labels=training.repeat_labels,
        )
        self.notes += feed.notes
        return feed

    def build_steps(self, feed: Feed) -> dict[Phase, TrainingStep]:
        """One step per phase; phases with the same objective share its compiled code."""
        training = self.config.training
        self.execution = resolve_execution(
            training.execution,
            self.device,
            recordable=records_steps(self.config.optimizer),
            own_views=self.augment.own and not self.frozen,
        )
        precision = resolve_precision(training.precision, self.device)
        self.bf16 = precision == "bf16"
        count = distributed.world_size()
        name = device_name(self.device)
        where = f"{count} x {name}" if count > 1 else name
        self.notes.append(f"runs on {where}: {self.execution}, {precision}")
        if self.compiled:
            register_operators()
        state, pretext = self.state, self.state.pretext
        # Not compiled, for code that looks at parts of a step.
        self.augmentation = self.build_augmentation(state.algorithm.views)
        self.loss = Loss(state.student, state.teacher, state.algorithm)
        parts = {False: self.compile_parts(self.augmentation, self.loss)}
        if pretext is not None:
            augmentation = self.build_augmentation(pretext.views)
            loss = Loss(state.student, state.teacher, pretext)
            parts[True] = self.compile_parts(augmentation, loss)
        return {
            phase: TrainingStep(
                state,
                feed,
                *parts[phase.self_supervised],
                ema=training.ema if training.ema_schedule == "constant" else None,
                clip=self.config.optimizer.clip,
                bf16=self.bf16,
                accumulate=training.accumulate,
                phase=phase,
            )
            for phase in self.phases.all()
        }

    @property
    def step(self) -> TrainingStep:
        """The step of the last phase, with the whole batch."""
        return self.steps[MAIN]

    def compile_parts(self, augmentation: Augmentation | CachedViews, loss: Loss) -> StepParts:
        if not self.compiled:
            static = self.config.training.accumulate == 1 and self.state.pretext is None
            return augmentation, share_loss(loss, static=static)
        own = isinstance(augmentation, Augmentation) and augmentation.augment.own
        views = augmentation if own else compile_augmentation(augmentation)
        return views, share_loss(compile_loss(loss), static=False)

    def build_augmentation(self, views: Views) -> Augmentation | CachedViews:
        join = self.config.training.labeled_view == "both" and bool(views.labeled)
        if not self.frozen or self.features is None:
            return Augmentation(self.augment, views, join_labeled=join)
        if join:
            raise UserError(
                "training.labeled_view = both does not work with a frozen body; use weak or strong"
            )
        columns = {"plain": (0,), "weak": self.features.weak, "strong": self.features.strong}
        return CachedViews(views, columns)

    def build_trainer(self, feed: Feed) -> Trainer:
        training, optimizer = self.config.training, self.config.optimizer
        graph = self.execution in ("graph", "recorded")
        steps = {
            phase: RecordedStep(step, self.notes.append) if graph else step
            for phase, step in self.steps.items()
        }
        advance = PhasedStep(steps, lambda: self.phases.at(self.state.step))
        return Trainer(
            self.state,
            feed,
            explain_out_of_memory(advance, self.device, training.batch),
            Schedule(
                steps=training.steps,
                rate=lambda at: learning_rate(at, training.steps, optimizer),
                log_every=training.log_every,
                evaluate_every=self.choose_evaluation_interval(),
                checkpoint_every=training.checkpoint_every,
                ema=None
                if training.ema_schedule == "constant"
                else lambda at: ema_decay(at, training.steps, training),
            ),
            seed=self.config.seed,
            # A benchmark's test images are looked at during training, and numbers chosen on them
            # are marked; a user's own test pictures are read once, after training.
            evaluate=self.evaluate if self.dataset.benchmark else None,
        )

    def choose_evaluation_interval(self) -> int:
        """Steps between evaluations during training; a note says if their cost decides it."""
        training, test = self.config.training, self.dataset.test
        views = self.state.algorithm.views
        unlabeled = training.unlabeled_batch(self.config.algorithm.ratio)
        images = training.batch * len(views.labeled) + unlabeled * len(views.unlabeled)
        if test is None or not self.dataset.benchmark:
            return training.evaluate_every
        interval = evaluation_interval(training, images, len(test))
        if interval > training.evaluate_every:
            self.notes.append(
                f"evaluates every {interval} steps: every {training.evaluate_every} would be more "
                f"than {100 * (training.evaluate_share or 0):g} % of the work "
                "(training.evaluate_share)"
            )
        return interval

    def measure_statistics(self) -> None:
        """The running statistics that the first pseudo-labels use."""
        first = self.dataset.unlabeled[:EVALUATION_BATCH]
        images = self.augment(self.dataset.images.read(first).to(self.device), "plain")
        measure_statistics(self.state.student, images)
        self.state.copy_statistics()

    @property
    def compiled(self) -> bool:
        return self.execution in ("compiled", "graph")

    def view_shape(self) -> tuple[int, int, int]:
        channels, height, width = self.dataset.images.shape
        crop = self.dataset.appearance.crop
        return (channels, crop, crop) if crop else (channels, height, width)


def tune_from(features: FrozenFeatures, head: HeadNetwork) -> TunedNetwork:
    """The whole network, to be trained from a fitted head and the published weights."""
    body = copy.deepcopy(features.model.body).cpu()
    tuned = TunedNetwork(body, copy.deepcopy(features.embedding), head.head.out_features)
    tuned.head.load_state_dict(head.head.state_dict())
    return tuned
