"""The benchmark of strategies: every strategy is measured on the test pictures."""

import json
from pathlib import Path

from benchmarks import strategies
from tests.own_pictures import clean_folder


def test_measures_once_and_writes_the_table(tmp_path: Path) -> None:
    folder = clean_folder(tmp_path / "photos", labels=4, unlabeled=0, test=2, size=16)
    results = tmp_path / "results"
    results.mkdir()
    options = ["--labels", "6", "--seeds", "1", "--scratch", "--results", str(results)]
    strategies.main([str(folder), *options, "--cache", str(tmp_path / "cache")])
    ledger = (results / "strategies.jsonl").read_text()
    rows = [json.loads(line) for line in ledger.splitlines()]
    heads = ["labels only", "propagated labels", "propagated labels, then training"]
    assert [row["strategy"] for row in rows] == heads
    assert {(row["labels"], row["seed"], row["pictures"], row["test"]) for row in rows} == {
        (6, 1, 12, 6)
    }
    assert len(list((tmp_path / "cache").glob("*.npy"))) == 2  # training and test pictures
    strategies.main([str(folder), *options])  # nothing is missing
    assert (results / "strategies.jsonl").read_text() == ledger
    page = (results / "strategies.md").read_text()
    assert "## photos" in page
    assert "| 6 | propagated labels |" in page


def test_a_network_from_scratch_gets_the_minutes(tmp_path: Path) -> None:
    folder = clean_folder(tmp_path / "photos", labels=4, unlabeled=0, test=2, size=16)
    case = strategies.Case(
        folder="photos", labels=6, seed=0, strategy=strategies.SCRATCH, minutes=0.001
    )
    (row,) = strategies.measure_folder(folder, [case], None)
    assert row.case == case
    assert row.network.startswith("wrn-")
    assert row.steps == 100  # the least


def test_one_choice_of_labels_has_an_interval_and_several_a_deviation() -> None:
    def row(seed: int, accuracy: float) -> strategies.Measurement:
        return strategies.Measurement(
            folder="photos",
            labels=40,
            seed=seed,
            strategy=strategies.SCRATCH,
            minutes=5,
            network="wrn-10-1",
            steps=1200,
            pictures=50,
            test=100,
            accuracy=accuracy,
            seconds=300,
        )

    name = "from scratch (wrn-10-1, 5 min, 1,200 steps)"
    page = strategies.render_page([row(0, 0.8)])
    assert f"| 40 | {name} | 80.0 (71.1 to 86.7) | 1 | 300 |" in page
    page = strategies.render_page([row(0, 0.8), row(1, 0.9)])
    assert f"| 40 | {name} | 85.0 ± 7.1 | 2 | 300 |" in page
