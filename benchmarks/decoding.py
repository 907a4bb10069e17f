"""Pictures decoded a second: JPEG files of 224x224, by so many threads or processes."""

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from benchmarks.engine import photographs

from fullmatch.data.stores.decoding import Decoders
from fullmatch.data.stores.pictures import put

SHAPE = (3, 224, 224)


def by_threads(paths: list[str], count: int) -> float:
    into = np.empty((len(paths), *SHAPE), np.uint8)
    with ThreadPoolExecutor(count) as threads:
        started = time.perf_counter()
        assert all(threads.map(put, paths, into))
        return len(paths) / (time.perf_counter() - started)


def by_processes(paths: list[str], count: int) -> float:
    into = np.empty((len(paths), *SHAPE), np.uint8)
    decoders = Decoders(SHAPE, count)
    try:
        started = time.perf_counter()
        assert all(decoders.decode(paths, into))
        return len(paths) / (time.perf_counter() - started)
    finally:
        decoders.close()


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=1000)
    options = parser.parse_args(words)
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores\n{'workers':>7} {'threads':>10} {'processes':>10}   pictures a second")
    with tempfile.TemporaryDirectory() as place:
        folder = photographs(Path(place), options.pictures)
        paths = sorted(str(path) for path in folder.rglob("*.jpg"))
        by_threads(paths, 1)  # so that the files are in memory
        for count in (1, 2, 4, 8, 16):
            if count <= cores:
                rates = by_threads(paths, count), by_processes(paths, count)
                print(f"{count:>7} {rates[0]:>10.0f} {rates[1]:>10.0f}", flush=True)


if __name__ == "__main__":
    main()
