"""How fast a training step is here, where its time goes, and how near that is to the machine."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from fullmatch.assembly import Assembly, device_name
from fullmatch.config import ExperimentConfig
from fullmatch.core import Appearance
from fullmatch.data import DATASETS, SemiDataset, Source, TensorStore, draw
from fullmatch.errors import UserError
from fullmatch.settings import display_name
from fullmatch.training.step import autocast

IMAGES = 50_000  # of noise, at most: enough that no cache holds them


def bench(
    config: ExperimentConfig, *, steps: int = 100, repeats: int = 3, profile: bool = False
) -> dict[str, Any]:
    """Train on noise of a data set's shape, and time it."""
    started = time.perf_counter()
    run = Assembly(config, noise(config))
    run.trainer.log_every = run.trainer.checkpoint_every = run.trainer.total = 10**9
    run.trainer.evaluate = None
    advance(run, 1)
    first_step = time.perf_counter() - started
    advance(run, max(4, steps // 5))  # past recording and autotuning
    times = [advance(run, steps) / steps for _ in range(repeats)]
    step = statistics.median(times)
    found = {
        "data": config.data.name,
        "algorithm": display_name(config.algorithm),
        "model": config.model.name,
        "device": device_name(run.device),
        "how": run.notes[-1],
        "steps_per_second": 1 / step,
        "spread": (max(times) - min(times)) / step,
        "milliseconds": {"step": 1e3 * step, **stages(run)},
        "seconds_to_first_step": first_step,
    }
    if profile:
        found["kernels"] = kernels(run)
    if run.device.type == "cuda":
        found |= machine_share(run, step)
    return found


def noise(config: ExperimentConfig) -> SemiDataset:
    """Random images in the shape and number of a benchmark."""
    facts = DATASETS.get(config.data.name)
    if facts is None:
        raise UserError(f"bench knows the shapes of: {', '.join(DATASETS)}")
    generator = torch.Generator().manual_seed(0)
    count = min(facts.train, IMAGES if facts.shape[1] <= 96 else 2_000)
    images = torch.randint(256, (count, *facts.shape), dtype=torch.uint8, generator=generator)
    labels = torch.randint(facts.num_classes, (count,), generator=generator)
    appearance = Appearance(facts.mean, facts.std, facts.flip, facts.padding, facts.crop)
    source = Source(
        name=facts.name,
        images=TensorStore(images),
        labels=labels,
        classes=tuple(map(str, range(facts.num_classes))),
        appearance=appearance,
        benchmark=True,
    )
    wanted = config.data.labels or 4 * facts.num_classes
    return SemiDataset.of(source, draw(labels, wanted, 0, facts.num_classes, facts.name))


def advance(run: Assembly, steps: int) -> float:
    """Seconds of so many steps, with the device's work finished at both ends."""
    synchronize(run.device)
    started = time.perf_counter()
    run.trainer.log_every = run.state.step + steps  # the one step at which a record is due
    next(run.trainer.run(until=run.state.step + steps))
    synchronize(run.device)
    return time.perf_counter() - started


def stages(run: Assembly) -> dict[str, float]:
    """Milliseconds of augmentation, forward, backward and update, each timed outside a recording.

    Launches are not overlapped as in a recorded step, so on a GPU these add up to more than it.
    """
    raw = run.trainer.feed.batch()
    batch = run.augmentation(raw)

    def augmentation() -> None:
        run.augmentation(raw)

    def forward() -> Any:
        with autocast(run.device, run.bf16):
            return run.loss(batch, run.state.progress).loss

    def backward() -> None:
        forward().backward()
        run.state.optimizer.zero_grad(set_to_none=True)

    timed = {
        work.__name__: milliseconds(work, run.device) for work in (augmentation, forward, backward)
    }
    return {
        "augmentation": timed["augmentation"],
        "forward": timed["forward"],
        "backward": timed["backward"] - timed["forward"],
    }


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
    with profile(activities=[activity]) as profiler:
        advance(run, steps)
    rows = []
    for event in profiler.key_averages():
        spent = event.self_device_time_total if cuda else event.self_cpu_time_total
        if spent:
            ms = spent / 1e3 / steps
            rows.append({"kernel": event.key, "milliseconds": ms, "calls": event.count / steps})
    return sorted(rows, key=lambda row: -row["milliseconds"])


def machine_share(run: Assembly, step: float) -> dict[str, Any]:
    """Arithmetic of a step against the card's measured bf16 matrix rate; memory in use."""
    from torch.utils.flop_counter import FlopCounterMode

    batch = run.augmentation(run.trainer.feed.batch())
    with FlopCounterMode(display=False) as counter, autocast(run.device, run.bf16):
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
        "copy_peak_tb_per_s": copy / 1e12,
        "peak_memory_gib": torch.cuda.max_memory_allocated() / 2**30,
    }


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
