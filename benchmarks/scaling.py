"""How the time of a training step grows with processes: a model, not a measurement.

    python benchmarks/scaling.py --compute 0.5 --parameters 1.5e6

A step is its computing, shared by all processes, plus what of the gradients' all-reduce the
backward pass does not hide. A ring all-reduce of B bytes over N processes sends 2 (N - 1) / N B
through the slowest link, in 2 (N - 1) messages; a tree needs 2 log2(N). Batch norms and the memory
of the algorithm send small messages during the forward pass, which nothing hides. `--measure` times
real steps with one, two and four processes on this CPU.
"""

import argparse
import math
import os
import subprocess
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """A link between two processes."""

    bandwidth: float  # bytes per second
    latency: float  # seconds per message


LINKS = {
    "nvlink": Network(400e9, 5e-6),  # inside one machine
    "infiniband": Network(50e9, 10e-6),  # 400 Gbit/s per GPU, between machines
    "ethernet": Network(1.25e9, 50e-6),  # 10 Gbit/s
}


@dataclass(frozen=True)
class Step:
    """What a step of one process with the whole batch costs."""

    compute: float  # seconds
    parameters: float
    batch: int  # images, which bound how many processes can share it
    small_messages: int = 40  # batch norms, gathered rows, k; forward and backward
    hidden: float = 0.6  # share of the computing during which gradients can be sent


def all_reduce(size: float, processes: int, link: Network) -> float:
    """Seconds of an all-reduce: by a ring, or by a tree, which suits small messages."""
    if processes == 1:
        return 0.0
    ring = 2 * (processes - 1) * (link.latency + size / processes / link.bandwidth)
    tree = 2 * math.ceil(math.log2(processes)) * (link.latency + size / link.bandwidth)
    return min(ring, tree)


def step_seconds(step: Step, processes: int, link: Network) -> float:
    """Computing, the exposed part of the gradients' all-reduce, and the small messages."""
    compute = step.compute / processes
    gradients = all_reduce(4 * step.parameters, processes, link)
    exposed = max(0.0, gradients - step.hidden * compute)
    return compute + exposed + step.small_messages * all_reduce(4096, processes, link)


def unlabeled_bytes(images: float) -> float:
    """What FlexMatch remembers of every unlabeled image, in each process."""
    return 2 * images


def order_bytes(images: float) -> float:
    """A permutation of an epoch, its keys and its order, in each process."""
    return 3 * 8 * images


def table(step: Step, sizes: list[int]) -> None:
    print("| processes | " + " | ".join(f"{name}, ms (efficiency)" for name in LINKS) + " |")
    print("| ---: " * (len(LINKS) + 1) + "|")
    for size in sizes:
        cells = []
        for link in LINKS.values():
            seconds = step_seconds(step, size, link)
            cells.append(f"{1e3 * seconds:.1f} ({step.compute / seconds / size:.0%})")
        print(f"| {size} | {' | '.join(cells)} |")


MEASURED = """
import os, sys, time, torch
from fullmatch import data, distributed
from fullmatch.data import SemiDataset
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.inputs import choose_split
from fullmatch.experiment.settings import resolve
torch.set_num_threads(1)
def measure():
    config = resolve(algorithm="fullmatch", assignments=("training.batch=16",))
    source = data.load("digits")
    run = Assembly(config, SemiDataset.from_source(source, choose_split(config, source)))
    run.state.train()
    for _ in range(3):
        run.trainer.take_step()
    started = time.process_time(), time.perf_counter()
    for _ in range(10):
        run.trainer.take_step()
    used, passed = time.process_time() - started[0], time.perf_counter() - started[1]
    if distributed.is_first():
        print(f"{distributed.world_size()} processes: {used / 10:.4f} s of CPU and "
              f"{passed / 10:.4f} s per step and process", flush=True)
if int(os.environ.get("WORLD_SIZE") or 1) > 1:
    with distributed.process_group():
        measure()
else:
    measure()
"""


def measure(sizes: list[int]) -> None:
    """Time real steps with these numbers of processes."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    for size in sizes:
        launcher = f"-m torch.distributed.run --standalone --nproc-per-node {size} --no-python"
        start = [] if size == 1 else [sys.executable, *launcher.split()]
        subprocess.run([*start, sys.executable, "-c", MEASURED], env=environment, check=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compute", type=float, default=0.5, help="seconds of a step alone")
    parser.add_argument("--parameters", type=float, default=25e6)
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--images", type=float, default=1e9)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4, 8, 64, 256, 1024])
    parser.add_argument("--measure", type=int, nargs="*")
    chosen = parser.parse_args(arguments)
    if chosen.measure is not None:
        measure(chosen.measure or [1, 2, 4])
        return
    step = Step(chosen.compute, chosen.parameters, chosen.batch)
    table(step, [size for size in chosen.processes if step.batch % size == 0])
    print(
        f"\nPer process with {chosen.images:.0e} unlabeled images: "
        f"{unlabeled_bytes(chosen.images) / 2**30:.1f} GiB for FlexMatch's labels, "
        f"{order_bytes(chosen.images) / 2**30:.0f} GiB for the order of an epoch"
    )


if __name__ == "__main__":
    main()
