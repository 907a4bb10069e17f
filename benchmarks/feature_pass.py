"""The feature pass of a pretrained network: pictures per second, and memory by number of pictures.

    python benchmarks/feature_pass.py [--pictures 200] [--few 1000] [--many 50000]

Speed is measured at the three sizes of a photo with one thread and with all of them, memory at one
small size in processes of their own: the peak after 1,000 and after 50,000 pictures, whose rows go
to a file. Pictures are made up as they are read, so that only the pass takes memory.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from fullmatch.core import Appearance
from fullmatch.data import ImageStore
from fullmatch.experiment.feature_pass import FeaturePass
from fullmatch.experiment.frozen_model import load_frozen_model
from fullmatch.models.pretrained import preferred_weights

CPU = torch.device("cpu")
APPEARANCE = Appearance(mean=(0.5,) * 3, std=(0.25,) * 3, padding=1)


class MadeUpPictures(ImageStore):
    """Noise, drawn anew at every read."""

    def __init__(self, count: int, side: int) -> None:
        self.count, self.side = count, side

    @property
    def paths(self) -> tuple[str, ...]:
        return ()

    def __len__(self) -> int:
        return self.count

    @property
    def shape(self) -> tuple[int, int, int]:
        return 3, self.side, self.side

    def read(self, index: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(int(index[0]))
        size = (len(index), 3, self.side, self.side)
        return torch.randint(256, size, generator=generator, dtype=torch.uint8)


def run_pass(count: int, side: int, sizes: tuple[int, ...], folder: Path | None) -> float:
    """Seconds of a pass."""
    weights = preferred_weights(CPU)
    assert weights is not None, "no pretrained weights on this machine"
    model = load_frozen_model(weights.model, APPEARANCE, side, None, sizes)
    work = FeaturePass(model, folder, CPU)
    started = time.perf_counter()
    work.describe(MadeUpPictures(count, side), 0, 0, lambda done, total: None)
    return time.perf_counter() - started


def measure_memory(count: int) -> float:
    """Peak memory in MiB of a process that describes so many small pictures."""
    command = [sys.executable, __file__, "--memory-of", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["mebibytes"])


def print_peak(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_pass(count, 32, (32,), Path(folder))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"mebibytes": peak}))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pictures", type=int, default=200, help="for the speed")
    parser.add_argument("--few", type=int, default=1_000)
    parser.add_argument("--many", type=int, default=50_000)
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.memory_of is not None:
        print_peak(options.memory_of)
        return
    print("| threads | pictures per second |\n|---:|---:|")
    for threads in sorted({1, torch.get_num_threads()}):
        torch.set_num_threads(threads)
        seconds = run_pass(options.pictures, 224, (160, 224, 288), None)
        print(f"| {threads} | {options.pictures / seconds:.1f} |", flush=True)
    few, many = (measure_memory(count) for count in (options.few, options.many))
    print(f"\n| pictures | peak memory |\n|---:|---:|\n| {options.few:,} | {few:.0f} MiB |")
    print(f"| {options.many:,} | {many:.0f} MiB ({many / few:.2f} times) |")


if __name__ == "__main__":
    main()
