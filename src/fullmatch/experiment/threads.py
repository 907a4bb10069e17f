"""How many threads of a CPU a run trains with, where its settings do not say it.

Sums depend on the number of threads, so a run on an idle machine always has torch's own number:
the same command gives the same result. Threads of a small network wait for each other at every
layer, though, and where other programs keep some cores busy, they wait most of the time. Only there
is one thread used instead, which the run says; its checkpoints keep the number.
"""

import os
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from fullmatch import distributed
from fullmatch.config import ExperimentConfig
from fullmatch.data import SemiDataset
from fullmatch.experiment.machine import choose_device
from fullmatch.models import build_network
from fullmatch.training.randomness import preserve_rng

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # a user who sets one has chosen
CLEARLY = 2.0  # times as fast one thread must be; an idle machine never comes near it
SHORT = 0.5  # processor seconds of a pass with one thread, up to which a network counts as small
FIRST_IMAGES = 8  # that tell whether it does
PASSES = 3
LONGEST = 2.0  # seconds after which fewer passes are enough


class PassTime(NamedTuple):
    """What a forward and backward pass took."""

    wall: float  # seconds, which other programs make longer
    processor: float  # seconds that this process computed, which they do not


Measure = Callable[[int, int], PassTime]  # by threads and images


class ThreadChooser:
    """Sets torch's threads at the start of a run; knows its own choice from that of a user."""

    def __init__(self) -> None:
        self.usual = self.chosen = 0

    def settle(
        self, config: ExperimentConfig, dataset: SemiDataset, measure: Measure | None = None
    ) -> str | None:
        """Choose the threads of a new run; the note for it, if they are not torch's own number."""
        if self.chosen and torch.get_num_threads() == self.chosen:  # by an earlier run
            torch.set_num_threads(self.usual)
        self.usual, self.chosen = torch.get_num_threads(), 0
        if self.usual == 1 or not may_choose(config):
            return None
        with preserve_rng(torch.device("cpu")):
            gain = one_thread_gain(
                measure or time_passes(config, dataset), self.usual, images_of_step(config)
            )
        torch.set_num_threads(self.usual)
        if gain < CLEARLY:
            return None
        self.chosen = 1
        torch.set_num_threads(self.chosen)
        return (
            f"trains with 1 thread, which is {gain:.1f} times as fast here as {self.usual}: other "
            f"programs keep the machine busy; --set training.threads={self.usual} uses "
            f"{self.usual} all the same"
        )


THREADS = ThreadChooser()


def may_choose(config: ExperimentConfig) -> bool:
    """Whether nobody has said how many threads there are."""
    return (
        choose_device().type == "cpu"
        and config.training.threads is None
        and config.model.body == "trained"
        and distributed.world_size() == 1
        and not any(os.environ.get(name) for name in VARIABLES)
    )


def images_of_step(config: ExperimentConfig) -> int:
    """Labeled images, and two views of the unlabeled ones."""
    training = config.training
    return training.batch + 2 * training.unlabeled_batch(config.algorithm.ratio)


def one_thread_gain(measure: Measure, usual: int, images: int) -> float:
    """How many times as fast one thread is; 0 for networks that are too large to be in doubt."""
    first = min(FIRST_IMAGES, images)
    measure(1, first)  # allocates memory
    if measure(1, first).processor * images / first > SHORT:
        return 0.0
    pairs: list[tuple[float, float]] = []
    while len(pairs) < PASSES and sum(map(sum, pairs)) < LONGEST:
        pairs.append((measure(1, images).wall, measure(usual, images).wall))
    one = statistics.median(alone for alone, _ in pairs)
    return statistics.median(together for _, together in pairs) / one


def time_passes(config: ExperimentConfig, dataset: SemiDataset) -> Measure:
    """Forward and backward passes of a network like that of the run, on noise."""
    channels, height, width = dataset.images.shape
    crop = dataset.appearance.crop
    shape = (channels, crop, crop) if crop else (channels, height, width)
    network = build_network(config.model.name, dataset.num_classes, shape)

    def measure(threads: int, images: int) -> PassTime:
        torch.set_num_threads(threads)
        noise = torch.randn(images, *shape)
        wall, processor = time.perf_counter(), time.process_time()
        network(noise).logits.sum().backward()
        return PassTime(time.perf_counter() - wall, time.process_time() - processor)

    return measure
