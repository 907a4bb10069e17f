"""Pictures decoded per second: JPEG files of 224x224, by threads and by processes."""

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from benchmarks.engine import write_photographs

from fullmatch.data.stores.decoding import DecoderPool
from fullmatch.data.stores.pictures import decode_into

SHAPE = (3, 224, 224)


def measure_threads(paths: list[str], count: int) -> float:
    out = np.empty((len(paths), *SHAPE), np.uint8)
    with ThreadPoolExecutor(count) as threads:
        started = time.perf_counter()
        assert all(threads.map(decode_into, paths, out))
        return len(paths) / (time.perf_counter() - started)


def measure_processes(paths: list[str], count: int) -> float:
    out = np.empty((len(paths), *SHAPE), np.uint8)
    pool = DecoderPool(SHAPE, count)
    try:
        started = time.perf_counter()
        assert all(pool.decode(paths, out))
        return len(paths) / (time.perf_counter() - started)
    finally:
        pool.close()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=1000)
    options = parser.parse_args(arguments)
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores\n{'workers':>7} {'threads':>10} {'processes':>10}   pictures per second")
    with tempfile.TemporaryDirectory() as place:
        folder = write_photographs(Path(place), options.pictures)
        paths = sorted(str(path) for path in folder.rglob("*.jpg"))
        measure_threads(paths, 1)  # loads the files into the page cache
        for count in (1, 2, 4, 8, 16):
            if count <= cores:
                rates = measure_threads(paths, count), measure_processes(paths, count)
                print(f"{count:>7} {rates[0]:>10.0f} {rates[1]:>10.0f}", flush=True)


if __name__ == "__main__":
    main()
