"""How fast a training step is here, where its time goes, and how near that is to the machine."""

import math
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fullmatch.config import ExperimentConfig
from fullmatch.core import Appearance
from fullmatch.data import DATASETS, SemiDataset, Source, TensorStore, draw_split
from fullmatch.experiment.build import Assembly, device_name, versions
from fullmatch.experiment.inputs import choose_split, load_source
from fullmatch.experiment.settings import display_name
from fullmatch.training.step import autocast

IMAGES = 50_000  # of noise, at most: enough that no cache holds them


def bench(
    config: ExperimentConfig,
    *,
    steps: int = 100,
    repeats: int = 3,
    profile: bool = False,
    alone: AbstractContextManager[object] | None = None,
) -> dict[str, Any]:
    """Train on noise of a data set's shape, or on somebody's pictures, and time it.

    `alone` is entered once all is compiled: several processes that share a device use it to
    compile side by side and measure one after another.
    """
    started = time.perf_counter()
    run = Assembly(config, images(config))
    watch = run.step.mark = StageWatch(run.device)
    run.trainer.log_every = run.trainer.checkpoint_every = run.trainer.total = 10**9
    run.trainer.evaluate = None
    advance(run, 1)
    first_step = time.perf_counter() - started
    advance(run, max(4, steps // 5))  # past recording and autotuning
    with alone or nullcontext():
        waited = run.trainer.feed.wait_seconds
        times = [advance(run, steps) / steps for _ in range(repeats)]
        waited = (run.trainer.feed.wait_seconds - waited) / (steps * repeats)
        step = statistics.median(times)
        raw = run.trainer.feed.batch()
        found: dict[str, Any] = {
            "data": config.data.name,
            "algorithm": display_name(config.algorithm),
            "model": config.model.name,
            "device": device_name(run.device),
            "versions": versions(),
            "labeled_images": len(raw.labeled),
            "unlabeled_images": len(raw.unlabeled),
            "how": "; ".join(run.notes),  # batches that had to shrink among them
            "steps_per_second": 1 / step,
            "spread": (max(times) - min(times)) / step,
            "milliseconds": {"step": 1e3 * step, **stages(run, watch)},
            "milliseconds_waited_for_pictures": 1e3 * waited,
            "seconds_to_first_step": first_step,
        }
        if profile:
            found["kernels"] = kernels(run)
            found["copies_from_host"] = sum(
                row["calls"] for row in found["kernels"] if "HtoD" in row["kernel"]
            )
        if run.device.type == "cuda":
            found |= machine_share(run, step)
    return found


def images(config: ExperimentConfig) -> SemiDataset:
    """Noise for the name of a benchmark; the pictures themselves for anything else."""
    if config.data.name in DATASETS:
        return noise(config)
    source = load_source(config)
    return SemiDataset.from_source(source, choose_split(config, source))


def noise(config: ExperimentConfig) -> SemiDataset:
    """Random images in the shape and number of a benchmark."""
    facts = DATASETS[config.data.name]
    generator = torch.Generator().manual_seed(0)
    count = min(facts.train, IMAGES if facts.shape[1] <= 96 else 2_000)
    images = torch.randint(256, (count, *facts.shape), dtype=torch.uint8, generator=generator)
    labels = torch.arange(count) % facts.num_classes
    appearance = Appearance(facts.mean, facts.std, facts.flip, facts.padding, facts.crop)
    source = Source(
        name=facts.name,
        images=TensorStore(images),
        labels=labels,
        classes=tuple(map(str, range(facts.num_classes))),
        appearance=appearance,
        benchmark=True,
    )
    # At least a batch of labels: with fewer the batch would shrink, and the step be another one.
    # At most what there is: noise can be less than the data set it stands for.
    batch = facts.num_classes * math.ceil(config.training.batch / facts.num_classes)
    wanted = min(max(config.data.labels or 0, batch), count - count % facts.num_classes)
    return SemiDataset.from_source(source, draw_split(labels, wanted, 0, facts.num_classes, facts.name))


def advance(run: Assembly, steps: int) -> float:
    """Seconds of so many steps, with the device's work finished at both ends."""
    synchronize(run.device)
    started = time.perf_counter()
    run.trainer.log_every = run.state.step + steps  # the one step at which a record is due
    next(run.trainer.run(until=run.state.step + steps))
    synchronize(run.device)
    return time.perf_counter() - started


class StageWatch:
    """Told by a training step where its stages end, also inside a recording; says how long."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.events: dict[str, torch.cuda.Event] = {}
        self.times: dict[str, float] = {}

    def __call__(self, stage: str) -> None:
        if self.device.type != "cuda":
            self.times[stage] = time.perf_counter()
            return
        # External: recorded again whenever a recording of the step is replayed.
        event = torch.cuda.Event(enable_timing=True, external=True)  # type: ignore[no-untyped-call]
        self.events.setdefault(stage, event).record()

    def milliseconds(self) -> dict[str, float]:
        """Of the last step, which must be finished on the device."""
        if self.events:
            return {b: x.elapsed_time(y) for (_, x), (b, y) in pairwise(self.events.items())}
        return {b: 1e3 * (y - x) for (_, x), (b, y) in pairwise(self.times.items())}


def stages(run: Assembly, watch: StageWatch, repeats: int = 10) -> dict[str, float]:
    """Median milliseconds of augmentation, forward, backward and update."""
    seen = []
    for _ in range(repeats):
        advance(run, 1)
        seen.append(watch.milliseconds())
    return {stage: statistics.median(one[stage] for one in seen) for stage in seen[0]}


def milliseconds(work: Callable[[], object], device: torch.device, repeats: int = 10) -> float:
    """Median time of some work, after two warm-ups."""
    times = []
    for _ in range(repeats + 2):
        synchronize(device)
        started = time.perf_counter()
        work()
        synchronize(device)
        times.append(time.perf_counter() - started)
    return 1e3 * statistics.median(times[2:])


def kernels(run: Assembly, steps: int = 5) -> list[dict[str, Any]]:
    """Every kernel of a step by the time it takes on the device, largest first."""
    from torch.profiler import ProfilerActivity, profile

    cuda = run.device.type == "cuda"
    activity = ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU
    # Without acc_events it warns that only one cycle is kept; there is only one.
    with profile(activities=[activity], acc_events=True) as profiler:
        advance(run, steps)
    rows = []
    for event in profiler.key_averages():
        spent = event.self_device_time_total if cuda else event.self_cpu_time_total
        if spent:
            ms = spent / 1e3 / steps
            rows.append({"kernel": event.key, "milliseconds": ms, "calls": event.count / steps})
    return sorted(rows, key=lambda row: -row["milliseconds"])


def machine_share(run: Assembly, step: float) -> dict[str, Any]:
    """Arithmetic and memory traffic of a step against what the card was measured to do."""
    from torch.utils.flop_counter import FlopCounterMode

    batch = run.augmentation(run.trainer.feed.batch())
    memory = torch.cuda.max_memory_allocated()  # of the step; what follows is not part of it
    traffic = Traffic()
    with FlopCounterMode(display=False) as counter, traffic, autocast(run.device, run.bf16):
        run.loss(batch, run.state.progress).loss.backward()
    run.state.optimizer.zero_grad(set_to_none=True)
    size = 8192
    a, b = (torch.randn(size, size, device=run.device, dtype=torch.bfloat16) for _ in range(2))
    peak = 2 * size**3 / (milliseconds(lambda: a @ b, run.device) / 1e3)
    big = torch.empty(2**31, dtype=torch.uint8, device=run.device)
    copy = 2 * big.numel() / (milliseconds(lambda: big.clone(), run.device) / 1e3)
    flops = counter.get_total_flops()
    return {
        "tflop_per_step": flops / 1e12,
        "matrix_peak_tflops": peak / 1e12,
        "share_of_matrix_peak": flops / step / peak,
        "gb_per_step": traffic.bytes / 1e9,
        "memory_peak_tb_per_s": copy / 1e12,
        "share_of_memory_peak": traffic.bytes / step / copy,
        "peak_memory_gib": memory / 2**30,
    }


class Traffic(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes that convolutions and normalisations must move: every operand and result once."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        result = func(*args, **(kwargs or {}))
        if any(word in str(func) for word in ("convolution", "batch_norm")):
            tensors = tree_leaves((args, kwargs, result))
            self.bytes += sum(one.nbytes for one in tensors if isinstance(one, torch.Tensor))
        return result


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
