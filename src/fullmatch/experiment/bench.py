"""How fast a training step is here, where its time goes, and how close that is to the peak."""

import math
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fullmatch.config import ExperimentConfig
from fullmatch.core import Appearance
from fullmatch.data import DATASETS, SemiDataset, Source, TensorStore, draw_split
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.inputs import choose_split, load_source, with_unknown_classes
from fullmatch.experiment.machine import device_name, versions
from fullmatch.experiment.settings import display_name
from fullmatch.training.step import autocast

MAX_IMAGES = 50_000  # of random noise: too many for any cache
MAX_LARGE_IMAGES = 2_000
FOREVER = 10**9  # steps


@dataclass(frozen=True)
class KernelTime:
    """One kernel in a step."""

    kernel: str
    milliseconds: float
    calls: float


@dataclass(frozen=True)
class MachineShare:
    """Arithmetic and memory traffic of a step against what the GPU was measured to do."""

    tflop_per_step: float
    matrix_peak_tflops: float
    share_of_matrix_peak: float
    gb_per_step: float
    memory_peak_tb_per_s: float
    share_of_memory_peak: float
    peak_memory_gib: float


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """The speed of a training step."""

    data: str
    algorithm: str
    model: str
    device: str
    versions: dict[str, str]
    labeled_images: int  # per step
    unlabeled_images: int
    how: str  # notes of the run, such as the device and a smaller batch
    steps_per_second: float
    spread: float  # of the repeated timings, as a fraction of the median
    milliseconds: dict[str, float]  # of a step, then of its stages
    milliseconds_waited_for_pictures: float
    seconds_to_first_step: float
    kernels: tuple[KernelTime, ...] | None = None  # the slowest first; None without a profile
    machine: MachineShare | None = None  # None without a GPU

    @property
    def copies_from_host(self) -> float | None:
        """Per step; None without a profile."""
        if self.kernels is None:
            return None
        return sum(each.calls for each in self.kernels if "HtoD" in each.kernel)

    def to_table(self) -> dict[str, Any]:
        """For JSON; what was not measured is left out."""
        table = asdict(self)
        kernels, machine = table.pop("kernels"), table.pop("machine")
        if kernels is not None:
            table |= {"kernels": list(kernels), "copies_from_host": self.copies_from_host}
        return table | (machine or {})


def measure_speed(
    config: ExperimentConfig,
    *,
    steps: int = 100,
    repeats: int = 3,
    profile: bool = False,
    exclusive: AbstractContextManager[object] | None = None,
) -> BenchResult:
    """Train on noise of a data set's shape, or on a user's pictures, and time it.

    `exclusive` is entered once everything is compiled: several processes that share a device use it
    to compile side by side and measure one after another.
    """
    run, first_step = take_first_step(config)
    advance(run, max(4, steps // 5))  # past recording and autotuning
    with exclusive or nullcontext():
        waited = run.trainer.feed.wait_seconds
        times = [advance(run, steps) / steps for _ in range(repeats)]
        waited = (run.trainer.feed.wait_seconds - waited) / (steps * repeats)
        step = statistics.median(times)
        batch = run.trainer.feed.batch()
        return BenchResult(
            data=config.data.name,
            algorithm=display_name(config.algorithm),
            model=config.model.name,
            device=device_name(run.device),
            versions=versions(),
            labeled_images=len(batch.labeled),
            unlabeled_images=len(batch.unlabeled),
            how="; ".join(run.notes),
            steps_per_second=1 / step,
            spread=(max(times) - min(times)) / step,
            milliseconds={"step": 1e3 * step, **measure_stages(run)},
            milliseconds_waited_for_pictures=1e3 * waited,
            seconds_to_first_step=first_step,
            kernels=profile_kernels(run) if profile else None,
            machine=measure_machine_share(run, step) if run.device.type == "cuda" else None,
        )


def take_first_step(config: ExperimentConfig) -> tuple[Assembly, float]:
    """A run that neither evaluates nor saves, after one step; and the seconds until then."""
    started = time.perf_counter()
    run = Assembly(config, load_images(config))
    run.trainer.schedule = replace(run.trainer.schedule, steps=FOREVER, checkpoint_every=FOREVER)
    run.trainer.evaluate = None
    timer = StageTimer(run.device)
    for step in run.steps.values():
        step.mark = timer
    advance(run, 1)
    return run, time.perf_counter() - started


def load_images(config: ExperimentConfig) -> SemiDataset:
    """Noise for the name of a benchmark; the pictures themselves for anything else."""
    if config.data.name in DATASETS:
        return make_noise(config)
    source = load_source(with_unknown_classes(config))
    return SemiDataset.from_source(source, choose_split(config, source))


def make_noise(config: ExperimentConfig) -> SemiDataset:
    """Random images in the shape and number of a benchmark."""
    facts = DATASETS[config.data.name]
    generator = torch.Generator().manual_seed(0)
    count = min(facts.train, MAX_IMAGES if facts.shape[1] <= 96 else MAX_LARGE_IMAGES)
    images = torch.randint(256, (count, *facts.shape), dtype=torch.uint8, generator=generator)
    labels = torch.arange(count) % facts.num_classes
    source = Source(
        name=facts.name,
        images=TensorStore(images),
        labels=labels,
        classes=tuple(map(str, range(facts.num_classes))),
        appearance=Appearance(facts.mean, facts.std, facts.flip, facts.padding, facts.crop),
        benchmark=True,
    )
    # At least one batch of labels: with fewer the batch would shrink, and the step would differ.
    # At most the images there are, which may be fewer than in the data set.
    batch = facts.num_classes * math.ceil(config.training.batch / facts.num_classes)
    wanted = min(max(config.data.labels or 0, batch), count - count % facts.num_classes)
    split = draw_split(labels, wanted, 0, facts.num_classes, facts.name)
    return SemiDataset.from_source(source, split)


def advance(run: Assembly, steps: int) -> float:
    """Seconds for so many steps, with the device idle at both ends."""
    synchronize(run.device)
    started = time.perf_counter()
    last = run.state.step + steps
    # A record is due at the last step only.
    run.trainer.schedule = replace(run.trainer.schedule, log_every=last)
    next(run.trainer.run(until=last))
    synchronize(run.device)
    return time.perf_counter() - started


class StageTimer:
    """Called by a training step where its stages end, also inside a recorded graph."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.events: dict[str, torch.cuda.Event] = {}
        self.times: dict[str, float] = {}

    def __call__(self, stage: str) -> None:
        if self.device.type != "cuda":
            self.times[stage] = time.perf_counter()
            return
        # External: recorded again whenever the graph of the step is replayed.
        event = torch.cuda.Event(enable_timing=True, external=True)  # type: ignore[no-untyped-call]
        self.events.setdefault(stage, event).record()

    def milliseconds(self) -> dict[str, float]:
        """Of the last step, which must be finished on the device."""
        if self.events:
            return {b: x.elapsed_time(y) for (_, x), (b, y) in pairwise(self.events.items())}
        return {b: 1e3 * (y - x) for (_, x), (b, y) in pairwise(self.times.items())}


def measure_stages(run: Assembly, repeats: int = 10) -> dict[str, float]:
    """Median milliseconds of augmentation, forward, backward and update."""
    timer, measured = run.step.mark, []
    assert isinstance(timer, StageTimer)
    for _ in range(repeats):
        advance(run, 1)
        measured.append(timer.milliseconds())
    return {stage: statistics.median(each[stage] for each in measured) for stage in measured[0]}


def measure_milliseconds(
    work: Callable[[], object], device: torch.device, repeats: int = 10
) -> float:
    """Median time of some work, after two warm-up runs."""
    times = []
    for _ in range(repeats + 2):
        synchronize(device)
        started = time.perf_counter()
        work()
        synchronize(device)
        times.append(time.perf_counter() - started)
    return 1e3 * statistics.median(times[2:])


def profile_kernels(run: Assembly, steps: int = 5) -> tuple[KernelTime, ...]:
    """Every kernel of a step and its time on the device, the slowest first."""
    from torch.profiler import ProfilerActivity, profile

    cuda = run.device.type == "cuda"
    activity = ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU
    # Without acc_events it warns that only one cycle is kept; there is only one.
    with profile(activities=[activity], acc_events=True) as profiler:
        advance(run, steps)
    kernels = []
    for event in profiler.key_averages():
        spent = event.self_device_time_total if cuda else event.self_cpu_time_total
        if spent:
            kernels.append(KernelTime(event.key, spent / 1e3 / steps, event.count / steps))
    return tuple(sorted(kernels, key=lambda each: -each.milliseconds))


def measure_machine_share(run: Assembly, step: float) -> MachineShare:
    """Compare a step of so many seconds with what this GPU can do."""
    from torch.utils.flop_counter import FlopCounterMode

    batch = run.augmentation(run.trainer.feed.batch())
    memory = torch.cuda.max_memory_allocated()  # before the measurements below
    traffic = Traffic()
    with FlopCounterMode(display=False) as counter, traffic, autocast(run.device, run.bf16):
        run.loss(batch, run.state.progress).loss.backward()
    run.state.optimizer.zero_grad(set_to_none=True)
    size = 8192
    a, b = (torch.randn(size, size, device=run.device, dtype=torch.bfloat16) for _ in range(2))
    peak = 2 * size**3 / (measure_milliseconds(lambda: a @ b, run.device) / 1e3)
    big = torch.empty(2**31, dtype=torch.uint8, device=run.device)
    copy = 2 * big.numel() / (measure_milliseconds(big.clone, run.device) / 1e3)
    flops = counter.get_total_flops()
    return MachineShare(
        tflop_per_step=flops / 1e12,
        matrix_peak_tflops=peak / 1e12,
        share_of_matrix_peak=flops / step / peak,
        gb_per_step=traffic.bytes / 1e9,
        memory_peak_tb_per_s=copy / 1e12,
        share_of_memory_peak=traffic.bytes / step / copy,
        peak_memory_gib=memory / 2**30,
    )


class Traffic(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes that convolutions and batch norms must move: every operand and result once."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        result = func(*args, **(kwargs or {}))
        if any(word in str(func) for word in ("convolution", "batch_norm")):
            tensors = tree_leaves((args, kwargs, result))
            self.bytes += sum(each.nbytes for each in tensors if isinstance(each, torch.Tensor))
        return result


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
