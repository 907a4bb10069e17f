"""Extras: without them everything else works, and what needs one says which."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.small_pictures import write_pets

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {
    name: [re.split(r"[>=<\[]", each)[0].removesuffix("-skinny") for each in packages]
    for name, packages in PROJECT["optional-dependencies"].items()
    if name not in ("dev", "docs")
}
TINY = "--steps 2 --model wrn-10-1 --set training.batch=4 --set training.ratio=1"
# A command that needs the packages of an extra.
NEEDS = {
    "export": "export run model.onnx",
    "hub": "train table.parquet",
    "sweep": "sweep digits --set optimizer.rate=0.01,0.1 --trials 1 --steps 1",
    "tensorboard": f"train digits --track tensorboard {TINY}",
    "wandb": f"train digits --track wandb {TINY}",
    "mlflow": f"train digits --track mlflow {TINY}",
}
# Commands that need none, in an order that makes what the next one reads.
WORKS = (
    f"train digits --out run {TINY} --baseline",
    "check pets --minutes 0.1",
    "evaluate run",
    "predict run pets/test",
    "report run",
    "card run",
    "verify run",
    "list algorithms",
    "list models",
    "bench digits --steps 1 --model wrn-10-1 --batch 4",
)


def run_without(packages: list[str], commands: list[str], folder: Path) -> list[tuple[int, str]]:
    done = subprocess.run(
        [
            sys.executable, "-m", "tests.packaging.base_installation",
            *packages, "--", json.dumps([command.split() for command in commands]),
        ],
        cwd=folder, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(code, text) for code, text in json.loads(done.stdout)]


def test_every_extra_is_tried() -> None:
    assert {*NEEDS, "notebook"} == set(EXTRAS)  # that one: tests/api/test_finished_run.py


def test_a_base_installation(tmp_path: Path) -> None:
    """One process: importing torch is what takes time."""
    write_pets(tmp_path)
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    packages = sorted({package for each in EXTRAS.values() for package in each})
    results = run_without(packages, [*WORKS, *NEEDS.values()], tmp_path)
    for command, (code, text) in zip(WORKS, results, strict=False):
        assert code == 0, f"fullmatch {command}: {text}"
    for extra, (code, text) in zip(NEEDS, results[len(WORKS) :], strict=True):
        assert code == 2, extra
        assert text.count("\n") == 1, text
        assert f"pip install 'fullmatch[{extra}]'" in text
