"""What a config and a data set are built into."""

from dataclasses import replace

import numpy as np
import torch

from fullmatch.algorithms import FixMatch, ReMixMatch
from fullmatch.algorithms.remixmatch import ReMixMatchLoss
from fullmatch.config import ExperimentConfig, ModelConfig, TrainingConfig
from fullmatch.data import SemiDataset, from_arrays
from fullmatch.data.quality.cleaning import clean_dataset
from fullmatch.experiment.build import Assembly


def uneven_pictures() -> SemiDataset:
    """100 pictures of one class and 10 of another, which training repeats."""
    pixels = np.random.default_rng(0).integers(0, 256, (110, 8, 8, 3), np.uint8)
    labels = np.repeat([0, 1], [100, 10])
    return clean_dataset(SemiDataset.from_source(from_arrays(pixels, labels)))


def test_alignment_aims_at_the_classes_of_the_pictures_not_of_the_batches() -> None:
    dataset = uneven_pictures()
    assert len(dataset.labeled) == 200
    config = ExperimentConfig(
        algorithm=ReMixMatch(),
        model=ModelConfig(name="wrn-10-1"),
        training=TrainingConfig(batch=8, steps=1),
    )
    algorithm = Assembly(config, dataset).state.algorithm
    assert isinstance(algorithm, ReMixMatchLoss)
    torch.testing.assert_close(algorithm.class_prior, torch.tensor([100 / 110, 10 / 110]))
    even = replace(dataset, labeled=torch.cat([torch.arange(10), torch.arange(100, 110)]))
    assert even.class_prior == even.batch_prior == (0.5, 0.5)


def test_costly_evaluations_are_rarer_and_a_note_says_so() -> None:
    dataset = uneven_pictures()
    dataset = replace(
        dataset, benchmark=True, test=dataset.images, test_labels=dataset.labels.clamp(min=0)
    )
    training = TrainingConfig(batch=4, ratio=1, steps=99, evaluate_every=1, evaluate_share=0.5)
    assembly = Assembly(
        ExperimentConfig(
            algorithm=FixMatch(), model=ModelConfig(name="wrn-10-1"), training=training
        ),
        dataset,
    )
    interval = assembly.trainer.schedule.evaluate_every
    cost = 2 * len(dataset.images) / (3 * 12)  # in steps
    assert interval / 2 < cost / 0.5 <= interval
    note = f"evaluates every {interval} steps: every 1 would be more than 50 %"
    assert assembly.notes[-1].startswith(note)
