"""Names of tables and shards: what they stand for, and how they are shown."""

from pathlib import Path

import pytest

from fullmatch.data.sources.places import (
    expand_pattern,
    is_table,
    make_absolute,
    table_exists,
    table_title,
)
from fullmatch.errors import UserError


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).touch()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hf:some/where", True),
        ("a/data.parquet", True),
        ("data.ARROW", True),
        ("shards-{000..099}.tar", True),
        ("shards.tar.gz", True),
        ("digits", False),
        ("pictures.csv", False),
        ("arrays.npz", False),
    ],
)
def test_what_is_a_table(name: str, expected: bool) -> None:
    assert is_table(name) is expected


def test_a_folder_is_not_a_table(tmp_path: Path) -> None:
    (tmp_path / "pictures.tar").mkdir()
    assert not is_table(str(tmp_path / "pictures.tar"))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a-{000..002}.tar", ["a-000.tar", "a-001.tar", "a-002.tar"]),
        ("a-{0..1}.tar", ["a-0.tar", "a-1.tar"]),
        ("{b,a}-{000..001}.tar", ["b-000.tar", "b-001.tar", "a-000.tar", "a-001.tar"]),
        ("{a-{0..1},b-000}.tar", ["a-0.tar", "a-1.tar", "b-000.tar"]),
        ("a-00?.tar", ["a-000.tar", "a-001.tar", "a-002.tar"]),
        ("a-[12]*.tar", ["a-1.tar"]),
        ("{odd}.tar", ["{odd}.tar"]),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, expected: list[str]) -> None:
    touch(tmp_path, "a-000.tar", "a-001.tar", "a-002.tar", "a-0.tar", "a-1.tar", "{odd}.tar")
    touch(tmp_path, "b-000.tar", "b-001.tar")
    assert [path.name for path in expand_pattern(f"{tmp_path}/{pattern}")] == expected


def test_patterns_that_stand_for_nothing(tmp_path: Path) -> None:
    touch(tmp_path, "a-0.tar")
    with pytest.raises(UserError, match=r"no such file: .*a-1.tar; check the path"):
        expand_pattern(f"{tmp_path}/a-{{0..1}}.tar")
    with pytest.raises(UserError, match=r"no such file: .*b\*.tar"):
        expand_pattern(f"{tmp_path}/b*.tar")
    with pytest.raises(UserError, match="more than 1,000,000 files"):
        expand_pattern("a-{0..99999999999}.tar")


def test_absolute_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "saved").mkdir()
    assert make_absolute("a-{0..1}.tar") == f"{tmp_path}/a-{{0..1}}.tar"
    assert make_absolute("hf:saved") == f"hf:{tmp_path}/saved"
    assert make_absolute("hf:owner/name") == "hf:owner/name"  # on the hub


def test_what_exists(tmp_path: Path) -> None:
    touch(tmp_path, "a-0.tar")
    assert table_exists(f"{tmp_path}/a-*.tar")
    assert not table_exists(f"{tmp_path}/a-{{0..1}}.tar")
    assert table_exists(f"hf:{tmp_path}")
    assert not table_exists(f"hf:{tmp_path}/other")
    assert table_exists("hf:owner/name")


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("data/photos-{000..099}.tar", "photos"),
        ("data/*.parquet", "data"),
        ("birds.parquet", "birds"),
        ("hf:saved/birds", "birds"),
        ("hf:owner/birds:large", "birds"),
        ("birds.tar.gz", "birds"),
    ],
)
def test_titles(name: str, title: str) -> None:
    assert table_title(name) == title
