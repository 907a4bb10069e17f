"""The table of benchmarks is complete, consistent, and fast to import."""

import subprocess
import sys
from pathlib import Path

import pytest

from fullmatch.data import DATASETS
from fullmatch.data.sources.catalog import data_root


def test_table_is_sorted_and_consistent() -> None:
    assert list(DATASETS) == sorted(DATASETS)
    for name, benchmark in DATASETS.items():
        assert benchmark.name == name
        assert len(benchmark.classes) in (0, benchmark.num_classes)
        assert len(benchmark.mean) == len(benchmark.std) == benchmark.shape[0]
        assert all(len(md5) in (0, 32) for _, md5 in benchmark.files)
        assert benchmark.bundled or benchmark.files


def test_digits_are_never_flipped() -> None:
    unflipped = {name for name, benchmark in DATASETS.items() if not benchmark.flip}
    assert unflipped == {"digits", "svhn", "svhn-noextra"}


def test_listing_does_not_import_torch() -> None:
    code = (
        "import sys; from fullmatch.data import DATASETS; "
        "[d.is_present() for d in DATASETS.values()]; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FULLMATCH_DATA", raising=False)
    assert data_root() == Path("data")
    monkeypatch.setenv("FULLMATCH_DATA", "~/pictures")
    assert data_root() == Path.home() / "pictures"
    assert data_root(tmp_path) == tmp_path


def test_presence(tmp_path: Path) -> None:
    assert DATASETS["digits"].is_present(tmp_path)
    assert not DATASETS["cifar100"].is_present(tmp_path)
    # Folders with the names of the files do not count.
    (tmp_path / "train").mkdir()
    (tmp_path / "test").mkdir()
    assert not DATASETS["cifar100"].is_present(tmp_path)
    (tmp_path / "cifar100.npz").touch()
    assert DATASETS["cifar100"].is_present(tmp_path)
