"""Tables: which column holds pictures and labels, what a label is, and which rows are for what."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from fullmatch.data.sources import arrow_tables
from fullmatch.data.sources.arrow_tables import parse_label, read_hub, read_table, split_of
from fullmatch.data.sources.table_parts import TablePart
from fullmatch.errors import UserError
from tests.encoded_pictures import encode, hub_dataset, noise, save_hub, write_parquet

PIXELS = noise(4)
FILES = [encode(pixels) for pixels in PIXELS]


def names_of(part: TablePart) -> list[str | None]:
    return [None if code < 0 else part.names[code] for code in part.labels.tolist()]


def write_columns(path: Path, **columns: Any) -> Path:
    parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([3, -1, 0, None], ["3", None, "0", None]),
        (["b", "", " a ", "-1"], ["b", None, "a", None]),
        ([1.0, math.nan, 2.0, -1.0], ["1", None, "2", None]),
        ([True, False, None, True], ["True", "False", None, "True"]),
        (pa.array(["x", "y", None, "x"]).dictionary_encode(), ["x", "y", None, "x"]),
        (pa.nulls(4), [None] * 4),
        (None, [None] * 4),
    ],
)
def test_labels(tmp_path: Path, labels: Any, expected: list[str | None]) -> None:
    (part,) = read_table(write_parquet(tmp_path / "a.parquet", FILES, labels))
    assert names_of(part) == expected
    assert [part.pictures.open(row).read() for row in range(4)] == FILES  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, -2, 0], "row 2: label is '-2', expected 0 or more, or a name, or -1 for unlabeled"),
        ([0.0, 1.5, 0, 0], "row 1: label is '1.5'"),
        ([[0], [1], [2], [3]], "damaged|row 0: label"),
    ],
)
def test_wrong_labels_name_file_and_row(tmp_path: Path, labels: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_table(write_parquet(tmp_path / "a.parquet", FILES, labels))


def test_classes_of_a_typed_column_keep_their_order(tmp_path: Path) -> None:
    hub_dataset(PIXELS, [1, 0, -1, 1], ["z", "a"]).to_parquet(str(tmp_path / "a.parquet"))
    (part,) = read_table(tmp_path / "a.parquet")
    assert (part.names, part.ordered) == (("z", "a"), True)
    assert names_of(part) == ["a", "z", None, "a"]


def test_a_class_that_the_type_does_not_have(tmp_path: Path) -> None:
    table = hub_dataset(PIXELS, [1, 0, -1, 1]).with_format("arrow")[:]
    labels = table.column_names.index("label")
    table = table.set_column(labels, table.schema.field(labels), [[0, 1, 2, 0]])
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"row 2: label is '2', expected 0 to 1, or -1"):
        read_table(tmp_path / "a.parquet")


def test_columns_are_found_by_type(tmp_path: Path) -> None:
    dataset = hub_dataset(PIXELS, [0, 1, 0, 1]).rename_columns({"image": "img", "label": "kind"})
    dataset.to_parquet(str(tmp_path / "a.parquet"))
    (part,) = read_table(tmp_path / "a.parquet")
    assert names_of(part) == ["cat", "dog", "cat", "dog"]
    assert part.pictures.open(0).read(4) == b"\x89PNG"  # type: ignore[union-attr]


def test_two_typed_columns_of_labels(tmp_path: Path) -> None:
    dataset = hub_dataset(PIXELS, [0, 1, 0, 1]).rename_column("label", "fine_label")
    feature = dataset.features["fine_label"]
    dataset = dataset.add_column("coarse_label", [0, 0, 1, 1]).cast_column("coarse_label", feature)
    dataset.to_parquet(str(tmp_path / "a.parquet"))
    with pytest.raises(UserError, match=r"labels fine_label, coarse_label; rename the column"):
        read_table(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": [1], "y": ["a"]}, r"no column of encoded pictures \(its columns: x \(int64\), y"),
        ({"image": ["a.png"]}, "no column of encoded pictures"),
        ({"a": [b"1"], "b": [b"2"]}, "more than one column of encoded pictures"),
        ({"image": pa.array([None], pa.binary())}, "no pictures in the column 'image', only"),
        (
            {"image": [{"bytes": None, "path": "a.png"}]},
            "no column of encoded pictures|no pictures in the column",
        ),
    ],
)
def test_wrong_columns(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_table(write_columns(tmp_path / "a.parquet", **columns))


def test_a_column_of_splits(tmp_path: Path) -> None:
    splits = ["train", "test", None, "Unlabeled"]
    path = write_parquet(tmp_path / "a.parquet", FILES, [0, 1, 1, 0], split=splits)
    parts = read_table(path, "test")
    assert [(part.split, names_of(part)) for part in parts] == [
        *(("train", ["0"]), ("test", ["1"]), ("", ["1"]), ("Unlabeled", ["0"]))
    ]
    assert parts[1].pictures.describe(0) == f"{path}, row 1"
    write_parquet(path, FILES, [0, 1, 1, 0], split=["train", "tset", "train", "train"])
    with pytest.raises(UserError, match=r"row 1: split is 'tset'; write train, unlabeled, test"):
        read_table(path)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train-00000-of-00002.parquet", "train"),
        ("unlabeled.parquet", "unlabeled"),
        ("validation_1.arrow", "validation"),
        ("data/test/0000.parquet", "test"),
        ("data/0000.parquet", ""),
        ("testimony.parquet", ""),
        (".parquet", ""),
    ],
)
def test_splits_by_file_name(name: str, split: str) -> None:
    assert split_of(Path("/home/test") / name, Path("/home/test")) == split
    assert split_of(Path("/home/test/0000.parquet")) == ""


def test_saved_data_sets(tmp_path: Path) -> None:
    dataset = hub_dataset(PIXELS, [0, 1, -1, 1])
    dataset.save_to_disk(str(tmp_path / "one"), num_shards=2)
    parts = read_hub(f"hf:{tmp_path / 'one'}")
    assert [names_of(part) for part in parts] == [["cat", "dog"], [None, "dog"]]
    save_hub(tmp_path / "two", {"train": dataset, "test": dataset.select([1, 0])})
    parts = read_hub(f"hf:{tmp_path / 'two'}")
    assert [(part.split, len(part.pictures)) for part in parts] == [("train", 4), ("test", 2)]
    assert names_of(parts[1]) == ["dog", "cat"]


def test_a_folder_of_parquet_files(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"):
        write_parquet(tmp_path / "data" / f"{name}.parquet", FILES[:2], [0, 1])
    assert [part.split for part in read_hub(f"hf:{tmp_path}")] == ["test", "train", "train"]


def test_folders_that_are_not_data_sets(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no Arrow or Parquet files; give a folder"):
        read_hub(f"hf:{tmp_path}")
    with pytest.raises(UserError, match="no such folder or file: "):
        read_hub(f"hf:{tmp_path / 'missing'}")
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(UserError, match=r"state.json is damaged; save the data set again"):
        read_hub(f"hf:{tmp_path}")
    for content in ("{}", '{"_data_files": [{}]}', "[]"):
        (tmp_path / "state.json").write_text(content)
        with pytest.raises(UserError, match=r"state.json is damaged; save the data set again"):
            read_hub(f"hf:{tmp_path}")


def test_a_saved_data_set_reads_no_file_outside_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    hub_dataset(PIXELS, [0, 1, 0, 1]).save_to_disk(str(folder))
    (file,) = folder.glob("*.arrow")
    file.rename(tmp_path / "elsewhere.arrow")
    state = {"_data_files": [{"filename": "../elsewhere.arrow"}]}
    (folder / "state.json").write_text(json.dumps(state))
    with pytest.raises(UserError, match=r"cannot read .*saved/elsewhere.arrow: No such file"):
        read_hub(f"hf:{folder}")


def test_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's files are read where `datasets` keeps them."""
    import datasets

    dataset = hub_dataset(PIXELS, [0, 1, -1, 1])
    saved = datasets.load_from_disk(str(save_hub(tmp_path / "kept", {"train": dataset})))
    asked: list[tuple[str, str | None]] = []

    def load_dataset(name: str, config: str | None) -> Any:
        asked.append((name, config))
        if name != "owner/birds":
            raise ConnectionError("cannot\nreach it")
        return saved

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    (part,) = read_hub("hf:owner/birds:large")
    assert (part.split, names_of(part)) == ("train", ["cat", "dog", None, "dog"])
    assert asked == [("owner/birds", "large")]
    message = r"no folder owner/other, and the hub has no .* \(cannot reach it\); check the name"
    with pytest.raises(UserError, match=message):
        read_hub("hf:owner/other")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r"pip install 'fullmatch\[hub\]'"):
        read_hub("hf:owner/birds")


def test_what_is_not_a_label() -> None:
    assert parse_label([1]) is None
    assert parse_label(b"cat") is None
    assert parse_label(np.inf) is None
    assert arrow_tables.parse_label(2, ["a", "b"]) is None


@pytest.mark.parametrize("names", [[1, 2], "ab", {"a": 1}, [None]])
def test_class_names_that_are_not_names(tmp_path: Path, names: object) -> None:
    features = {"label": {"_type": "ClassLabel", "names": names}}
    facts = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table({"image": FILES, "label": [0, 1, 0, 1]}).replace_schema_metadata(facts)
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(UserError, match="class names are not a list of names"):
        read_table(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    "facts", ["[]", '{"info": {"features": [1]}}', "[" * 99_999, '{"info": 3}']
)
def test_facts_of_another_kind_are_ignored(tmp_path: Path, facts: str) -> None:
    table = pa.table({"image": FILES, "label": ["a", "b", "a", "b"]})
    path = tmp_path / "a.parquet"
    parquet.write_table(table.replace_schema_metadata({"huggingface": facts}), path)
    (part,) = read_table(path)
    assert part.names == ("a", "b")
