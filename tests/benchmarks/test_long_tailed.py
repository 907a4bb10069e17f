"""The long-tailed benchmark: it measures what is missing and writes a table."""

import json
from pathlib import Path

import pytest

from benchmarks import long_tailed
from fullmatch.algorithms import algorithm
from fullmatch.data.long_tail import class_weights, long_tailed_sizes
from fullmatch.experiment.settings import read_config
from fullmatch.storage.run_folder import RunFolder


def arguments(folder: Path, *more: str) -> list[str]:
    places = ["--runs", str(folder / "runs"), "--results", str(folder / "results")]
    return ["--steps", "2", "--seeds", "0", "--only", "fixmatch", "abc", *places, *more]


def test_measures_once_and_writes_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long_tailed.main(arguments(tmp_path))
    results = tmp_path / "results" / "long_tailed.jsonl"
    first, second = map(json.loads, results.read_text().splitlines())
    assert (first["method"], second["method"]) == ("fixmatch", "abc")
    assert first["unlabeled"] == second["unlabeled"] > 100
    assert sum(first["recalls"]) / 10 == pytest.approx(first["balanced_accuracy"])
    (run,) = (tmp_path / "runs").glob("*-abc-0-2")
    data = read_config(RunFolder(run)).data
    assert data.imbalance == data.unlabeled_imbalance == 10
    long_tailed.main(arguments(tmp_path))
    assert len(results.read_text().splitlines()) == 2
    page = (tmp_path / "results" / "long_tailed.md").read_text()
    assert page in capsys.readouterr().out
    assert "## digits, imbalance 10 and 10" in page
    assert page.count("| `abc` | 1 |") == 1


def test_other_imbalance_is_another_table(tmp_path: Path) -> None:
    long_tailed.main(arguments(tmp_path))
    (tmp_path / "results" / long_tailed.NOTES).write_text("## Notes\n\n- A note.\n")
    long_tailed.main(arguments(tmp_path, "--unlabeled-imbalance", "-10"))
    page = (tmp_path / "results" / "long_tailed.md").read_text()
    assert "## digits, imbalance 10 and -10" in page
    assert page.endswith("## Notes\n\n- A note.\n")


def test_difference_is_seed_by_seed() -> None:
    def measurement(method: str, seed: int, accuracy: float) -> long_tailed.LongTailedMeasurement:
        return long_tailed.LongTailedMeasurement(
            data="digits",
            method=method,
            seed=seed,
            steps=5,
            labels=100,
            imbalance=20,
            unlabeled_imbalance=20,
            unlabeled=300,
            balanced_accuracy=accuracy,
            recalls=(1.0, 0.9, 0.8, 0.5, 0.3, 0.2, 0.1),
            seconds=1.0,
            device="CPU",
        )

    runs = [measurement("fixmatch", seed, 0.5 + seed / 10) for seed in (0, 1)]
    runs += [measurement("abc", seed, 0.6 + seed / 10) for seed in (0, 1, 2)]
    page = long_tailed.render_page(runs)
    assert "| `fixmatch` | 2 | 55.0 ± 7.1 | - | 90.0 ± 0.0 | 20.0 ± 0.0 | 1 |" in page
    assert "| `abc` | 3 | 70.0 ± 10.0 | +10.0 ± 0.0 | 90.0 ± 0.0 | 20.0 ± 0.0 | 1 |" in page


def test_protocols() -> None:
    labels, imbalance, unlabeled, _ = long_tailed.PROTOCOLS["cifar10"]
    weights = class_weights(imbalance, 10)
    assert unlabeled is not None
    assert [long_tailed_sizes(n, weights)[0] for n in (labels, unlabeled)] == [1500, 3000]
    for name, _ in long_tailed.METHODS.values():
        algorithm(name)
