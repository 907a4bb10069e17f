"""Compare the steps per second of two versions of the code on this machine.

    python benchmarks/compare_steps.py --old OTHER_CHECKOUT/src --new src [BENCH ARGUMENTS]

Runs `fullmatch bench` with both in turn, each time in a new process; needs no data set. Arguments
for `fullmatch bench` may follow. [default: cifar10 --algorithm fullmatch]
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

BENCH = (
    "import sys, fullmatch; from fullmatch.cli import main; "
    "assert fullmatch.__file__.startswith(sys.argv.pop(1)), fullmatch.__file__; main(sys.argv[1:])"
)


def measure(source: Path, arguments: Sequence[str]) -> float:
    """Return the steps per second of the code in a source folder."""
    command = [sys.executable, "-c", BENCH, str(source), "bench", *arguments, "--json"]
    path = os.pathsep.join(filter(None, (str(source), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the benchmark of {source} failed:\n{done.stderr or done.stdout}")
    return float(json.loads(done.stdout)["steps_per_second"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", type=Path, required=True, help="source folder, such as old/src")
    parser.add_argument("--new", type=Path, default=Path("src"), help="source folder")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each")
    options, bench = parser.parse_known_args(arguments)
    bench = bench or ["cifar10", "--algorithm", "fullmatch"]
    sources = {"old": options.old.resolve(), "new": options.new.resolve()}
    rates: dict[str, list[float]] = {name: [] for name in sources}
    for number in range(options.rounds):
        # Reversed in every second round, so that a slow drift of the clock rate cancels out.
        for name in sorted(sources, reverse=number % 2 == 0):
            rates[name].append(measure(sources[name], bench))
            print(f"{name}: {rates[name][-1]:.2f} steps/s", flush=True)
    old, new = median(rates["old"]), median(rates["new"])
    print(f"median: old {old:.2f}, new {new:.2f} steps/s; new / old = {new / old:.4f}")


if __name__ == "__main__":
    main()
