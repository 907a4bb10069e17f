"""A finished model on test images."""

from dataclasses import dataclass, replace

from torch import Tensor

from fullmatch.data import ImageStore, Source, TensorStore
from fullmatch.data.open_set import select_images
from fullmatch.errors import UserError
from fullmatch.evaluation.intervals import wilson_interval
from fullmatch.evaluation.scores import compute_scores, predict_probabilities
from fullmatch.evaluation.wording import percent
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.inputs import load_source
from fullmatch.experiment.leakage import describe_unknown, find_learned, read_learned
from fullmatch.experiment.machine import choose_device
from fullmatch.experiment.open_set import score_open_set
from fullmatch.experiment.settings import named_code, read_config
from fullmatch.experiment.student_and_teacher import EVALUATION_BATCH
from fullmatch.inference.trained_run import require_data
from fullmatch.pages.markup import join, tag
from fullmatch.storage.result import Interval, OpenSetScores, Scores
from fullmatch.storage.run_folder import RunFolder


@dataclass(frozen=True)
class Evaluation:
    """Scores of a model on test images."""

    data: str
    images: int
    classes: tuple[str, ...]
    scores: Scores
    interval: Interval  # of the accuracy
    notes: tuple[str, ...]  # what the user should know about the test images
    unknown_classes: tuple[str, ...] = ()  # whose images are not in `scores`
    open_set: OpenSetScores | None = None  # how well they are recognized as unknown

    def _repr_html_(self) -> str:
        """A table of the recalls, for notebooks."""
        low, high = self.interval
        accuracy = f"{percent(self.scores.top1)} (95 % interval {percent(low)} to {percent(high)})"
        rows = [
            tag("tr", tag("td", name), tag("td", "-" if recall is None else percent(recall)))
            for name, recall in zip(self.classes, self.scores.per_class, strict=True)
        ]
        heading = tag("tr", tag("th", "class"), tag("th", "recall"))
        subject = f"Accuracy on {self.images:,} test images of {self.data}: "
        return join([tag("p", subject, tag("strong", accuracy)), tag("table", heading, *rows)])


def evaluate_run(folder: RunFolder, data: str | None = None) -> Evaluation:
    """Score a run's model on its own test images, or on those of another data set.

    Images it was trained on are left out, since they would only measure its memory.
    """
    if not folder.model.exists():
        folder.read_result()  # its error says how to finish a run that was stopped
    classifier = Classifier.load(folder.model, named_code(folder))
    source = load_test_source(folder, data)
    test, labels = check_test_images(source, classifier)
    unseen, notes = find_unseen(folder, test, source.name)
    probs = predict_images(classifier, test)
    scores = compute_scores(probs[unseen.to(probs.device)], labels[unseen])
    images = int(unseen.sum())
    return Evaluation(
        data=source.name,
        images=images,
        classes=source.classes,
        scores=scores,
        interval=wilson_interval(scores.top1, images),
        notes=notes,
        unknown_classes=source.unknown_classes,
        open_set=evaluate_open_set(folder, classifier, source, unseen),
    )


def evaluate_open_set(
    folder: RunFolder, classifier: Classifier, source: Source, unseen: Tensor
) -> OpenSetScores | None:
    """Scores on images of unknown classes, besides the `unseen` ones of known classes."""
    if source.test is None or source.test_labels is None or source.unknown_test is None:
        return None
    unknown_unseen = ~find_learned(read_learned(folder), source.unknown_test)
    part = replace(
        source,
        test=select_images(source.test, unseen.nonzero().flatten()),
        test_labels=source.test_labels[unseen],
        unknown_test=select_images(source.unknown_test, unknown_unseen.nonzero().flatten()),
    )
    return score_open_set(classifier, part, choose_device())


def load_test_source(folder: RunFolder, data: str | None) -> Source:
    config = read_config(folder)
    if data is None:
        require_data(config.data.name, folder.path)
    else:
        config = replace(config, data=replace(config.data, name=data))
    return load_source(config)


def check_test_images(source: Source, classifier: Classifier) -> tuple[ImageStore, Tensor]:
    """The test images and their labels; `UserError` if the model cannot be scored on them."""
    if source.test is None or source.test_labels is None:
        raise UserError(
            f"{source.name} has no test images; add a folder test/CLASS/*, a column `split`, or a "
            "file whose name begins with test"
        )
    if source.classes != classifier.classes:
        raise UserError(
            f"{source.name} has classes {', '.join(source.classes)}, but the model knows "
            f"{', '.join(classifier.classes)}; evaluate it on data with the same classes"
        )
    if source.test.shape != classifier.picture:
        raise UserError(
            f"{source.name} has images of {source.test.shape}, the model was trained on "
            f"{classifier.picture}; choose the size with --set data.size when training"
        )
    return source.test, source.test_labels


def find_unseen(folder: RunFolder, test: ImageStore, name: str) -> tuple[Tensor, tuple[str, ...]]:
    """(N,) bool: which test images the run was not trained on; and notes about the others."""
    unknown = describe_unknown(folder, read_config(folder).data.name)
    notes = [unknown] if unknown else []
    unseen = ~find_learned(read_learned(folder), test)
    left_out = int((~unseen).sum())
    if left_out == len(unseen):
        raise UserError(
            f"the model was trained on every test image of {name}; evaluate it on pictures it "
            "has never seen"
        )
    if left_out:
        notes.append(
            f"{left_out} of {len(unseen)} test images are left out: the model was trained on them"
        )
    return unseen, tuple(notes)


def predict_images(classifier: Classifier, images: ImageStore) -> Tensor:
    device = choose_device()
    if isinstance(images, TensorStore):
        images = images.to(device)
    classifier = classifier.to(device)
    return predict_probabilities(classifier, images, batch=EVALUATION_BATCH, device=device)
