"""Student and teacher at work: classifiers, class probabilities, scores."""

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from fullmatch import data, distributed
from fullmatch.augment.views import Augmenter
from fullmatch.config import ExperimentConfig
from fullmatch.core import Algorithm, Network
from fullmatch.data import SemiDataset
from fullmatch.evaluation.scores import compute_scores, predict_together
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.feature_pass import FrozenFeatures
from fullmatch.models.frozen import FrozenNetwork, HeadNetwork
from fullmatch.storage.result import Scores
from fullmatch.training.state import TrainState
from fullmatch.training.step import autocast

EVALUATION_BATCH = 500


class StudentAndTeacher:
    """What both predict, whatever their training has come to."""

    config: ExperimentConfig
    dataset: SemiDataset
    features: FrozenFeatures | None  # of a frozen body
    device: torch.device
    bf16: bool
    state: TrainState
    augment: Augmenter

    @property
    def frozen(self) -> bool:
        """Whether training reads embeddings that were computed before, instead of images."""
        return self.config.model.body == "frozen"

    def predict(self, who: str, images: data.ImageStore) -> Tensor:
        if self.frozen and self.features is not None and self.features.test is not None:
            return self.predict_embeddings(who, self.features.test)
        return self.predict_shared((who,), images)[who]

    def predict_shared(self, models: Sequence[str], images: data.ImageStore) -> dict[str, Tensor]:
        """Each process predicts its share; the last image fills up those that have one less."""
        count, processes = len(images), distributed.world_size()
        own = torch.arange(distributed.rank(), -(-count // processes) * processes, processes)
        with autocast(self.device, self.bf16):
            probs = predict_together(
                {who: self.classifier(who).eval() for who in models},
                images,
                batch=EVALUATION_BATCH,
                device=self.device,
                positions=own.clamp(max=count - 1).to(self.device),
            )
        return {who: distributed.gather(rows)[:count] for who, rows in probs.items()}

    @torch.no_grad()
    def predict_embeddings(self, who: str, rows: Tensor) -> Tensor:
        """Class probabilities of embeddings (N, D)."""
        network, algorithm = self.trained(who)
        network.eval()
        return algorithm.predict(network, rows.to(self.device).float()[:, :, None, None])

    def trained(self, who: str) -> tuple[Network, Algorithm]:
        state = self.state
        if who == "student":
            return state.student, state.algorithm
        return state.teacher, state.teacher_algorithm()

    def classifier(self, who: str) -> Classifier:
        network, algorithm = self.trained(who)
        if self.frozen and self.features is not None:
            network = join_head(self.features, network).to(self.device)
        return Classifier(
            network,
            algorithm,
            self.augment,
            classes=self.dataset.classes,
            image=self.dataset.images.shape,
        )

    def evaluate(self) -> dict[str, Scores]:
        """Scores of student and teacher on the test images."""
        labels = self.dataset.test_labels
        assert labels is not None
        return {who: compute_scores(probs, labels) for who, probs in self.predict_test().items()}

    def predict_test(self) -> dict[str, Tensor]:
        """Class probabilities of the test images, by student and teacher."""
        models = ("student", "teacher")
        # Images in memory are read in no time: one model after the other draws the random numbers
        # of methods that predict with some in the order of earlier results.
        if self.frozen or isinstance(self.test_store, data.TensorStore):
            return {who: self.predict(who, self.test_store) for who in models}
        return self.predict_shared(models, self.test_store)

    @cached_property
    def test_store(self) -> data.ImageStore:
        """The test images, on the device if they are tensors; moved there once."""
        test = self.dataset.test
        assert test is not None
        return test.to(self.device) if isinstance(test, data.TensorStore) else test


def join_head(features: FrozenFeatures, network: Network) -> FrozenNetwork:
    """The whole network, from images to logits, with a trained head."""
    assert isinstance(network, HeadNetwork)
    whole = FrozenNetwork(features.model.body, features.embedding, network.head.out_features)
    whole.head.load_state_dict(network.head.state_dict())
    return whole
