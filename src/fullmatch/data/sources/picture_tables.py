"""Pictures where they already are: tables of Arrow or Parquet, Hugging Face, and tar shards."""

from collections.abc import Collection
from pathlib import Path

from fullmatch.data.dataset import Source
from fullmatch.data.sources.arrow_tables import read_hub, read_table, split_of
from fullmatch.data.sources.places import HUB, TABLES, expand_pattern, table_title
from fullmatch.data.sources.shards import read_shard
from fullmatch.data.sources.table_parts import PictureTable, TablePart, join_parts
from fullmatch.data.stores.encoded import EncodedPictures, JoinedPictures


def from_table(
    name: str,
    *,
    size: int | None = None,
    max_bytes: int | None = None,
    unknown_classes: Collection[str] = (),
) -> Source:
    """Load a source from `hf:NAME`, or from the files that a name or pattern stands for.

    Pictures are kept in memory up to `max_bytes`. Only `unknown_classes` may be in the test alone.
    """
    return survey_table(name, unknown_classes).to_source(size, max_bytes=max_bytes)


def survey_table(name: str, unknown_classes: Collection[str] = ()) -> PictureTable:
    """What the data consists of, before any picture is decoded."""
    return join_parts(table_title(name), read_parts(name), unknown_classes)


def list_encoded(name: str) -> EncodedPictures:
    """All pictures, whatever their split and label."""
    return JoinedPictures([part.pictures for part in read_parts(name)])


def read_parts(name: str) -> list[TablePart]:
    """The pictures with their labels, by split and file."""
    if name.startswith(HUB):
        return read_hub(name)
    return [part for path in expand_pattern(name) for part in _read_file(path)]


def _read_file(path: Path) -> list[TablePart]:
    is_table = path.suffix.lower() in TABLES
    return read_table(path, split_of(path)) if is_table else [read_shard(path)]
