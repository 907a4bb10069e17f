"""A trained classifier on test images of known and of unknown classes."""

import torch

from fullmatch.data import ImageStore, Source, TensorStore
from fullmatch.evaluation.open_set import (
    OpenSetPredictions,
    by_confidence,
    by_open_set_head,
    compute_open_set_scores,
)
from fullmatch.evaluation.scores import predict_probabilities
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.student_and_teacher import EVALUATION_BATCH
from fullmatch.storage.result import OpenSetScores


def score_open_set(
    classifier: Classifier, source: Source, device: torch.device
) -> OpenSetScores | None:
    """Scores on the test images of a source; None if there are none of unknown classes."""
    test, labels, unknown = source.test, source.test_labels, source.unknown_test
    if test is None or labels is None or unknown is None or not len(unknown):
        return None
    return compute_open_set_scores(
        recognize(classifier, test, device),
        labels,
        recognize(classifier, unknown, device),
        source.num_classes,
    )


def recognize(
    classifier: Classifier, images: ImageStore, device: torch.device
) -> OpenSetPredictions:
    """How known each image looks: by the method's own head, or else by its confidence."""
    if isinstance(images, TensorStore):
        images = images.to(device)
    predicts_unknown = classifier.algorithm.predicts_unknown
    predict = classifier.predict_open_set if predicts_unknown else classifier
    probs = predict_probabilities(predict, images, batch=EVALUATION_BATCH, device=device)
    return by_open_set_head(probs) if predicts_unknown else by_confidence(probs)
