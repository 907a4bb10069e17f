"""From a config to everything a step needs: where data, algorithm and training meet."""

import platform
from typing import ClassVar

import torch
from torch import Tensor

import fullmatch
from fullmatch import data, distributed
from fullmatch.augment.views import Augmenter
from fullmatch.config import ExperimentConfig
from fullmatch.core import Task
from fullmatch.data import SemiDataset
from fullmatch.data.feed import feed_of
from fullmatch.errors import many
from fullmatch.evaluation.scores import Scores, probabilities, scores
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.warm_start import started
from fullmatch.models import network, shape_of_map
from fullmatch.models.kernels.device import introduce_operators
from fullmatch.models.kernels.synchronized import share_statistics
from fullmatch.models.weights import as_published
from fullmatch.training.execution import (
    Recorded,
    chosen_execution,
    chosen_precision,
    compiled_augmentation,
    compiled_loss,
    within_memory,
)
from fullmatch.training.process import set_process
from fullmatch.training.randomness import borrowed
from fullmatch.training.schedule import learning_rate
from fullmatch.training.state import TrainState
from fullmatch.training.step import Augmentation, Loss, TrainingStep, autocast
from fullmatch.training.trainer import Trainer

EVALUATION_BATCH = 500


class Assembly:
    """State, step and trainer of a config on a data set; knows nothing of files.

    `started` is what an earlier process said of the weights that it started from: the state to be
    restored holds what became of them, and they are not read again.
    """

    announced: ClassVar["Assembly | None"] = None  # what other processes work on

    def __init__(
        self, config: ExperimentConfig, dataset: SemiDataset, started: str | None = None
    ) -> None:
        self.config, self.dataset, self.started = config, dataset, started
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.notes: list[str] = list(dataset.notes)
        with borrowed(self.device):
            torch.manual_seed(config.seed)
            self.build()

    def build(self) -> None:
        config, device, training = self.config, self.device, self.config.training
        set_process(device, threads=training.threads, deterministic=training.deterministic)
        image = self.view_shape()
        student = network(
            config.model.name,
            self.dataset.num_classes,
            image,
            pretrained=config.model.pretrained and self.started is None,
            norm_momentum=config.model.norm_momentum,
        )
        if self.started is None:
            self.started = started(config.model, student, self.dataset.classes)
        self.notes += [self.started] if self.started else []
        appearance = self.dataset.appearance
        if config.model.pretrained or config.model.start or config.model.weights:
            appearance = as_published(appearance, student)
        self.augment = Augmenter(appearance, config.data.strong).to(device)
        if distributed.processes() > 1 and (own := share_statistics(student)):
            self.notes.append(f"{own} norms of {config.model.name} are each process's own")
        feature_map = shape_of_map(student, image)
        self.task = task = Task(
            num_classes=self.dataset.num_classes,
            num_labeled=len(self.dataset.labeled),
            num_unlabeled=len(self.dataset.unlabeled),
            class_prior=self.dataset.class_prior,
            image=image,
            features=feature_map[0],
            feature_map=feature_map,
        )
        algorithm = config.algorithm.build(task)
        algorithm.weak_gradient = training.weak_gradient
        self.state = TrainState(
            student,
            algorithm,
            weight_decay=config.optimizer.weight_decay,
            momentum=config.optimizer.momentum,
            nesterov=config.optimizer.nesterov,
            device=device,
        )
        ratio = config.algorithm.ratio if training.ratio is None else training.ratio
        feed = feed_of(
            self.dataset, batch=training.batch, ratio=ratio, seed=config.seed, device=device
        )
        self.notes += feed.notes
        execution = chosen_execution(training.execution, device)
        precision = chosen_precision(training.precision, device)
        self.bf16 = precision == "bf16"
        count = distributed.processes()
        where = f"{count} x {device_name(device)}" if count > 1 else device_name(device)
        self.notes.append(f"runs on {where}: {execution}, {precision}")
        # The modules themselves, uncompiled, for whoever wants to look at a part of the step.
        self.augmentation = Augmentation(self.augment, algorithm.views)
        self.loss = Loss(self.state.student, self.state.teacher, algorithm)
        self.eager = eager = execution == "eager"
        if not eager:
            introduce_operators()
        self.step = TrainingStep(
            self.state,
            feed,
            self.augmentation if eager else compiled_augmentation(self.augmentation),
            self.loss if eager else compiled_loss(self.loss),
            ema=training.ema,
            clip=config.optimizer.clip,
            bf16=self.bf16,
        )
        recorded = Recorded(self.step, self.notes.append) if execution == "graph" else self.step
        self.trainer = Trainer(
            self.state,
            feed,
            within_memory(recorded, device, training.batch),
            rate=lambda at: learning_rate(
                at,
                training.steps,
                base=config.optimizer.rate,
                cosine=config.optimizer.cosine,
            ),
            total=training.steps,
            seed=config.seed,
            log_every=training.log_every,
            evaluate_every=training.evaluate_every,
            checkpoint_every=training.checkpoint_every,
            # A benchmark's test images are looked at during training, and numbers chosen on them
            # are marked; somebody's own test pictures are read once, when all is done.
            evaluate=self.evaluate if self.dataset.benchmark else None,
            announce=self.announce if count > 1 else None,
        )

    def announce(self, what: str) -> None:
        """Tells the other processes what is done next, and first of all on which work."""
        if Assembly.announced is not self:
            Assembly.announced = self
            state = self.state
            work = (self.config, self.dataset, state.state_dict(), state.totals.names, state.step)
            distributed.told(work)
        distributed.told(what)

    def view_shape(self) -> tuple[int, int, int]:
        channels, height, width = self.dataset.images.shape
        crop = self.dataset.appearance.crop
        return (channels, crop, crop) if crop else (channels, height, width)

    def predict(self, who: str, images: data.ImageStore) -> Tensor:
        classifier = self.classifier(who).eval()
        with autocast(self.device, self.bf16):
            return probabilities(classifier, images, batch=EVALUATION_BATCH, device=self.device)

    def classifier(self, who: str) -> Classifier:
        state = self.state
        student = who == "student"
        return Classifier(
            state.student if student else state.teacher,
            state.algorithm if student else state.teacher_algorithm(),
            self.augment,
            classes=self.dataset.classes,
            image=self.dataset.images.shape,
        )

    def evaluate(self) -> dict[str, Scores]:
        labels = self.dataset.test_labels
        assert labels is not None
        return {who: scores(probs, labels) for who, probs in self.on_the_test().items()}

    def on_the_test(self) -> dict[str, Tensor]:
        """Probabilities of the test images, of student and teacher."""
        store = self.test_store()
        return {who: self.predict(who, store) for who in ("student", "teacher")}

    def test_store(self) -> data.ImageStore:
        """The test images, on the device if they are tensors; moved there once."""
        if not hasattr(self, "_test"):
            test = self.dataset.test
            self._test = test.to(self.device) if isinstance(test, data.TensorStore) else test
        return self._test  # type: ignore[return-value]


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({many(torch.get_num_threads(), 'thread')})"


def versions() -> dict[str, str]:
    return {
        "fullmatch": fullmatch.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
