"""The benchmark of unknown classes: it measures once, resumes, and writes a table."""

import json
from pathlib import Path

import pytest

from benchmarks import open_set

QUICK = ["--steps", "2", "--seeds", "0", "--only", "fixmatch", "iomatch, not aligned"]


def test_measures_once_and_writes_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*QUICK, "--results", str(tmp_path), "--runs", str(tmp_path / "runs")]
    open_set.main(arguments)
    ledger = tmp_path / "open_set.jsonl"
    plain, aware = map(json.loads, ledger.read_text().splitlines())
    assert plain["method"] == "fixmatch"
    assert plain["labels"] == aware["labels"] == 32
    assert plain["unknown"] == ["8", "9"]
    assert "unknown_accuracy" not in plain
    assert 0 <= aware["balanced_accuracy"] <= 1
    assert aware["steps"] == 2
    before = ledger.read_text()
    capsys.readouterr()
    open_set.main(arguments)  # nothing is missing
    assert ledger.read_text() == before
    page = (tmp_path / "open_set.md").read_text(encoding="utf-8")
    assert page.strip() == capsys.readouterr().out.strip()
    assert "## digits: 8 known and 2 unknown classes, 32 labels" in page
    assert "| fixmatch | 1 | " in page
    assert "| iomatch, not aligned | 1 | " in page
    ledger.unlink()  # finished runs are not trained again
    open_set.main(arguments)
    assert [json.loads(line)["auroc"] for line in ledger.read_text().splitlines()] == [
        plain["auroc"],
        aware["auroc"],
    ]


def test_rows_have_means_and_deviations(tmp_path: Path) -> None:
    rows = [
        {"data": "cifar10", "method": method, "seed": seed, "steps": 10, "labels": 24}
        | {"unknown": ["ship", "truck"], "accuracy": 0.5 + 0.1 * seed, "auroc": 0.75}
        | {"seconds": 10.0, "device": "GPU"}
        | ({"balanced_accuracy": 0.4, "unknown_accuracy": 0.3} if "iomatch" in method else {})
        for method in ("iomatch", "fixmatch")
        for seed in (0, 1)
    ]
    ledger = tmp_path / "open_set.jsonl"
    ledger.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / open_set.NOTES).write_text("## Notes\n")
    open_set.main(["--only-table", "--results", str(tmp_path)])
    page = (tmp_path / "open_set.md").read_text(encoding="utf-8")
    assert "| iomatch | 2 | 55.0 ± 7.1 | 75.0 ± 0.0 | 40.0 ± 0.0 | 30.0 ± 0.0 | 10 |" in page
    assert "| fixmatch | 2 | 55.0 ± 7.1 | 75.0 ± 0.0 | - | - | 10 |" in page
    assert page.index("| fixmatch") < page.index("| iomatch")
    assert "## cifar10: 8 known and 2 unknown classes, 24 labels" in page
    assert page.endswith("\n\n## Notes\n")


def test_protocol_of_cifar10() -> None:
    arguments = open_set.parse_arguments(["--data", "cifar10", "--seeds", "1"])
    case = open_set.list_cases(arguments)[0]
    assert case.labels == 24
    assert case.steps == 65_536
    assert case.unknown == ("airplane", "automobile", "ship", "truck")
