"""What it costs to share steps by `DistributedDataParallel`, on one GPU.

    python benchmarks/shared_steps.py

First the compiled step of a single process against the same step inside `DistributedDataParallel`
with a world of one process, timed in turn. Then two processes on this one GPU: which part of the
gradients' all-reduce runs while the backward pass computes, from a profile. NCCL refuses to run two
processes on one GPU, so they use gloo, which sends through the memory of the machine.
"""

import argparse
import math
import multiprocessing
import statistics
import tempfile
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.distributed as dist
from torch.autograd.profiler_util import FunctionEvent
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

from fullmatch.experiment.bench import FOREVER, advance, make_noise, synchronize
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.settings import resolve
from fullmatch.training.step import average_gradients

ROUNDS, STEPS = 7, 50
SMALLEST_BUCKET = 20_000  # numbers; batch norms send fewer
Interval = tuple[float, float]


def build(settings: list[str], *, shared: bool) -> Assembly:
    """A run on noise; `shared`: inside `DistributedDataParallel` even in a single process."""
    config = resolve(data="cifar10", algorithm="fullmatch", assignments=settings)
    run = Assembly(config, make_noise(config))
    run.trainer.schedule = replace(run.trainer.schedule, steps=FOREVER, checkpoint_every=FOREVER)
    run.trainer.evaluate = None
    step = run.step
    if shared and not isinstance(step.loss, DistributedDataParallel):
        assert isinstance(step.loss, torch.nn.Module)
        step.loss = average_gradients(step.loss, static=not run.compiled)
    return run


def connect(rank: int, size: int, folder: str, backend: str) -> None:
    place = f"file://{folder}/{backend}-{size}-{multiprocessing.current_process().name}"
    if size > 1:
        place = f"file://{folder}/{backend}-{size}"
    dist.init_process_group(backend, init_method=place, rank=rank, world_size=size)


def time_steps(pipe: Connection, folder: str, settings: list[str], shared: bool) -> None:
    """Compile, then time steps whenever asked to."""
    if shared:
        connect(0, 1, folder, "nccl" if torch.cuda.is_available() else "gloo")
    run = build(settings, shared=shared)
    advance(run, 5)
    pipe.send("ready")
    for steps in iter(pipe.recv, None):
        pipe.send(advance(run, steps) / steps)


def compare_steps(settings: list[str], rounds: int, steps: int) -> list[list[float]]:
    """Seconds per step of a single process, and inside `DistributedDataParallel`, in turn."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    with tempfile.TemporaryDirectory() as folder:
        for shared in (False, True):
            pipe, other = context.Pipe()
            arguments = (other, folder, settings, shared)
            process = context.Process(target=time_steps, args=arguments)
            process.start()
            other.close()
            pipes.append(pipe)
            processes.append(process)
        for pipe in pipes:
            assert pipe.recv() == "ready"
        times: list[list[float]] = [[], []]
        for _ in range(rounds):
            for pipe, seconds in zip(pipes, times, strict=True):
                pipe.send(steps)
                seconds.append(pipe.recv())
        for pipe, process in zip(pipes, processes, strict=True):
            pipe.send(None)
            process.join()
    return times


def profile_steps(rank: int, pipe: Connection, folder: str, settings: list[str]) -> None:
    """Profile a shared step; the first process sends what overlaps."""
    connect(rank, 2, folder, "gloo")
    run = build(settings, shared=True)
    advance(run, 5)
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities, record_shapes=True) as profiler:
        run.trainer.take_step()
        synchronize(run.device)
    if rank == 0:
        pipe.send(overlap(list(profiler.events())))
    dist.destroy_process_group()


def overlap(events: list[FunctionEvent]) -> dict[str, float]:
    """How many gradient messages there are, their time, and the part of it hidden by computing."""
    sent = [interval(event) for event in events if sends_gradients(event)]
    on_gpu = [event for event in events if event.device_type.name == "CUDA"]
    if on_gpu:
        computing = [interval(event) for event in on_gpu if "Memcpy" not in event.name]
    else:
        computing = [interval(event) for event in events if "evaluate_function" in event.name]
    total = sum(end - start for start, end in sent)
    hidden = sum(covered(each, computing) for each in sent)
    last = max(end for _, end in computing)
    before = sum(start < last for start, _ in sent)
    return {"messages": len(sent), "started": before, "ms": total / 1e3, "hidden": hidden / total}


def sends_gradients(event: FunctionEvent) -> bool:
    shapes: Any = event.input_shapes or []
    large = any(math.prod(shape) >= SMALLEST_BUCKET for shape in shapes)
    return event.name == "gloo:all_reduce" and large


def interval(event: FunctionEvent) -> Interval:
    return event.time_range.start, event.time_range.end


def covered(one: Interval, others: list[Interval]) -> float:
    """The length of what an interval shares with the union of others."""
    length, at = 0.0, one[0]
    for start, end in sorted(others):
        start, end = max(start, at), min(end, one[1])
        if end > start:
            length, at = length + end - start, end
    return length


def measure_overlap(settings: list[str]) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    pipe, other = context.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=profile_steps, args=(rank, other, folder, settings))
            for rank in range(2)
        ]
        for process in processes:
            process.start()
        other.close()
        result: dict[str, float] = pipe.recv()
        for process in processes:
            process.join()
    return result


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--execution", default="compiled", choices=("eager", "compiled"))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--set", action="append", default=[])
    chosen = parser.parse_args(arguments)
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    print(f"{name}, torch {torch.__version__}, fullmatch, cifar10")
    settings = [*chosen.set, f"training.execution={chosen.execution}"]
    single, shared = compare_steps(settings, chosen.rounds, chosen.steps)
    ratio = statistics.median(b / a for a, b in zip(single, shared, strict=True))
    print("| step | ms, median | ms, all rounds |\n| --- | ---: | --- |")
    kinds: dict[str, Any] = {"a single process": single, "DistributedDataParallel": shared}
    for kind, seconds in kinds.items():
        every = ", ".join(f"{1e3 * second:.2f}" for second in seconds)
        median = 1e3 * statistics.median(seconds)
        print(f"| {chosen.execution}, {kind} | {median:.2f} | {every} |")
    print(f"ratio {ratio:.3f}", flush=True)
    for execution in dict.fromkeys(("eager", chosen.execution)):
        seen = measure_overlap([*chosen.set, f"training.execution={execution}"])
        print(
            f"two processes, gloo, {execution}: {seen['messages']:.0f} gradient messages, "
            f"{seen['started']:.0f} of them begun before the backward pass ended; "
            f"{seen['hidden']:.0%} of their {seen['ms']:.2f} ms run beside computing",
            flush=True,
        )


if __name__ == "__main__":
    main()
