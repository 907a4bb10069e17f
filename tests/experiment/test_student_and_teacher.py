"""What student and teacher predict, read from as few pictures as possible."""

from dataclasses import replace

import torch

from fullmatch.algorithms import ReMixMatch
from fullmatch.config import ExperimentConfig, ModelConfig, TrainingConfig
from fullmatch.data import TensorStore
from fullmatch.experiment.build import Assembly
from tests.experiment.test_build import uneven_pictures


class EncodedPictures:
    """A store whose pictures would be decoded; counts how many are read."""

    paths = ()

    def __init__(self, pictures: TensorStore) -> None:
        self.pictures, self.shape, self.reads = pictures, pictures.shape, 0

    def __len__(self) -> int:
        return len(self.pictures)

    def read(self, index: torch.Tensor) -> torch.Tensor:
        self.reads += len(index)
        return self.pictures.read(index)


def test_an_evaluation_decodes_every_test_picture_once() -> None:
    dataset = uneven_pictures()
    test = EncodedPictures(TensorStore(dataset.images.read(torch.arange(7))))
    dataset = replace(dataset, test=test, test_labels=dataset.labels[:7])
    config = ExperimentConfig(
        algorithm=ReMixMatch(),
        model=ModelConfig(name="wrn-10-1"),
        training=TrainingConfig(batch=8, steps=1),
    )
    assembly = Assembly(config, dataset)
    scores = assembly.evaluate()
    assert test.reads == 7
    probs = assembly.predict_test()
    for who in ("student", "teacher"):
        assert probs[who].equal(assembly.predict(who, test.pictures))
        assert scores[who].images == 7
    assert assembly.trainer.schedule.evaluate_every == 1024
