"""Several processes against one: the same numbers, and the same result when processes are killed.

    python benchmarks/several_processes.py equal --processes 2 4
    python benchmarks/several_processes.py kill --kills 5

`equal` trains every algorithm for 20 steps with the same batches and prints the largest difference
of any weight, of any momentum (the sum of the gradients), of the algorithm's memory and of k. The
network computes in float64 where the method allows it, so that a difference is one of the method
and not of rounding, which may decide on which side of 0 an activation is. `kill` ends a random
process of a run with SIGKILL at random moments under `torchrun --max-restarts`, and compares it
with an undisturbed run.
"""

import argparse
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from safetensors.torch import load_file
from torch import Tensor, nn

from fullmatch import data
from fullmatch.algorithms import names
from fullmatch.data import SemiDataset
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.inputs import choose_split
from fullmatch.experiment.settings import resolve

STEPS = 20
SETTINGS = ("training.batch=8", "training.ratio=2", f"training.steps={STEPS}")
# Precision of the network and of the algorithm's memory, in the order in which they are tried:
# some methods cast to float32 between layers, or before they write to memory.
PRECISIONS = (
    (torch.float64, torch.float64),
    (torch.float64, torch.float32),
    (torch.float32, torch.float32),
)
# VAT's published xi is lost to rounding: its direction is another at every change of the order.
OWN_SETTINGS = {"vat": ("algorithm.xi=0.01",)}
SMALL = "--labels 40 --set training.batch=8 --set training.ratio=2 --set training.log_every=5"


def train(name: str, folder: str) -> dict[str, Tensor]:
    """The state after 20 steps and the mean of k, in the highest precision that works."""
    for network, memory in PRECISIONS:
        torch.set_default_dtype(network)
        run = build(name, folder)
        for module in run.state.algorithm.modules():
            cast_buffers(module, memory)
        try:
            for _ in range(STEPS):
                run.trainer.take_step()
        except RuntimeError as error:
            if "dtype" not in str(error):
                raise
            continue
        state = {k: tensor for k, tensor in run.state.state_dict().items() if k != "totals"}
        k = run.state.totals.read().get("k", 0.0)
        return state | {"k": torch.tensor(k), "bits": torch.tensor(torch.finfo(network).bits)}
    raise AssertionError(name)


def build(name: str, folder: str) -> Assembly:
    semco = (f"algorithm.embeddings={folder}/embeddings.npy",) if name.endswith("semco") else ()
    settings = (*SETTINGS, *OWN_SETTINGS.get(name, ()), *semco)
    config = resolve(algorithm=name, assignments=settings)
    source = data.load("digits")
    run = Assembly(config, SemiDataset.from_source(source, choose_split(config, source)))
    run.state.train()
    return run


def cast_buffers(module: nn.Module, dtype: torch.dtype) -> None:
    for key, buffer in module.named_buffers(recurse=False):
        if buffer.is_floating_point():
            setattr(module, key, buffer.to(dtype))


def work(rank: int, size: int, folder: str, chosen: list[str]) -> None:
    torch.set_num_threads(1)
    if size > 1:
        place = f"file://{folder}/rendezvous-{size}"
        dist.init_process_group("gloo", init_method=place, rank=rank, world_size=size)
    for name in chosen:
        torch.save(train(name, folder), f"{folder}/{name}-{size}-{rank}")


def run_processes(size: int, folder: str, chosen: list[str]) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=work, args=(rank, size, folder, chosen)) for rank in range(size)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


def differences(one: dict[str, Tensor], other: dict[str, Tensor]) -> list[float]:
    """The largest of weights and statistics, of momenta, of memory, and of k."""
    groups = {"weights": 0.0, "momentum": 0.0, "memory": 0.0, "k": 0.0}
    for key, tensor in one.items():
        kind = key.split(".")[0]
        group = {"student": "weights", "teacher": "weights", "algorithm": "memory"}.get(kind, kind)
        gap = (tensor.double() - other[key].double()).abs().max().item() if tensor.numel() else 0
        groups[group] = max(groups.get(group, 0.0), gap)
    return [groups[name] for name in ("weights", "momentum", "memory", "k")]


def compare(sizes: list[int], chosen: list[str]) -> None:
    columns = [f"{what}, {n}" for n in sizes for what in ("weights", "gradients", "memory", "k")]
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/embeddings.npy", np.random.default_rng(0).normal(size=(10, 8)))
        for size in (1, *sizes):
            run_processes(size, folder, chosen)
        print(f"| algorithm | precision | {' | '.join(columns)} |")
        print("| --- " * (len(columns) + 2) + "|")
        for name in chosen:
            one = torch.load(f"{folder}/{name}-1-0")
            cells: list[str] = []
            for size in sizes:
                states = [torch.load(f"{folder}/{name}-{size}-{rank}") for rank in range(size)]
                worst = [
                    max(gaps) for gaps in zip(*(differences(one, s) for s in states), strict=True)
                ]
                cells += [f"{gap:.0e}" for gap in worst]
            print(f"| {name} | {int(one['bits'])} bit | {' | '.join(cells)} |", flush=True)


def torchrun(arguments: str, place: Path, restarts: int) -> "subprocess.Popen[str]":
    launcher = f"-m torch.distributed.run --standalone --nproc-per-node 2 --max-restarts {restarts}"
    return subprocess.Popen(
        [sys.executable, *launcher.split(), "-m", "fullmatch", *arguments.split()],
        cwd=place,
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def workers(launcher: int) -> list[int]:
    """The processes that torchrun has started and that live."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text()
    return [int(child) for child in children.split()]


def read_model(run: Path) -> dict[str, Tensor]:
    return load_file(run / "model.safetensors")


def kill(kills: int, steps: int, seed: int) -> None:
    """Kill a random worker at random moments; the run ends as one that was left alone."""
    chance = random.Random(seed)
    command = f"train digits {SMALL} --steps {steps} --set training.checkpoint_every=20 --out"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        calm = torchrun(f"{command} calm", place, 0)
        output: Any = calm.communicate()[0]
        assert calm.returncode == 0, output
        for number in range(kills):
            run = torchrun(f"{command} run-{number}", place, 3)
            for _ in range(chance.randint(1, 3)):
                time.sleep(chance.uniform(0, 40))
                victims = workers(run.pid) if run.poll() is None else []
                if victims:
                    rank = chance.randrange(len(victims))
                    os.kill(victims[rank], signal.SIGKILL)
                    print(f"run {number}: killed process {rank}", flush=True)
            output, _ = run.communicate()
            assert run.returncode == 0, output
            ours, theirs = read_model(place / f"run-{number}"), read_model(place / "calm")
            equal = all(torch.equal(ours[key], theirs[key]) for key in theirs)
            print(f"run {number}: ended {'with the same model' if equal else 'OTHERWISE'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("equal", "kill"))
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--algorithms", nargs="+", default=names())
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.what == "equal":
        compare(chosen.processes, chosen.algorithms)
    else:
        kill(chosen.kills, chosen.steps, chosen.seed)
