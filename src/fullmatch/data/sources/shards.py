"""Read WebDataset shards: tar files with KEY.jpg, and its label in KEY.cls or KEY.json.

Members whose names agree up to the first dot belong to one picture. Nothing is unpacked: all that
is kept is an index of where the pictures begin.
"""

import os
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fullmatch.data.sources.arrow_tables import parse_label, split_of
from fullmatch.data.sources.table_parts import TablePart
from fullmatch.data.stores.pictures import EXTENSIONS
from fullmatch.data.stores.tar import TarPictures
from fullmatch.errors import UserError
from fullmatch.files.reading import parse_json, require_regular

LABEL_KEY = "label"  # in KEY.json
MAX_LABEL_BYTES = 2**20  # of KEY.cls and KEY.json


@dataclass
class _Sample:
    """One picture of a shard: where it is, and its label."""

    name: str = ""  # of the member; empty until there is one
    start: int = 0
    size: int = 0
    label: str = ""


@dataclass
class _Shard:
    """The samples of a tar file as they are found."""

    path: Path
    samples: dict[str, _Sample] = field(default_factory=dict)  # by key

    def add(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        key, extension = split_name(member.name)
        if extension in EXTENSIONS:
            self._require_file(member)
            sample = self.samples.setdefault(key, _Sample())
            if sample.name:
                raise self.error(
                    f"{member.name} is a second picture beside {sample.name}", "one per key"
                )
            sample.name, sample.start, sample.size = member.name, member.offset_data, member.size
        elif extension in (".cls", ".json"):
            self._require_file(member)
            self._add_label(tar, member, key, is_json=extension == ".json")

    def _add_label(
        self, tar: tarfile.TarFile, member: tarfile.TarInfo, key: str, *, is_json: bool
    ) -> None:
        if member.size > MAX_LABEL_BYTES:
            raise self.error(f"{member.name} is too large for a label", "a short text")
        file = tar.extractfile(member)
        assert file is not None
        try:
            text = file.read().decode("utf-8")
            value = parse_json(text) if is_json else text
        except ValueError:
            kind = "JSON" if is_json else "UTF-8"
            raise self.error(f"{member.name} is not {kind}", f"{kind} there") from None
        if is_json:
            if not isinstance(value, dict) or LABEL_KEY not in value:
                return  # other facts about the picture
            value = value[LABEL_KEY]
        label = parse_label(value)
        if label is None:
            expected = "0 or more, or a name, or -1 for unlabeled"
            raise self.error(f"{member.name} has the label {str(value)[:80]!r}", expected)
        sample = self.samples.setdefault(key, _Sample())
        if sample.label and label and sample.label != label:
            problem = f"{member.name} has the label {label!r}, another one than {sample.label!r}"
            raise self.error(problem, "one label per picture")
        sample.label = sample.label or label

    def _require_file(self, member: tarfile.TarInfo) -> None:
        """Only files with names below the folder that someone may unpack them into."""
        if member.name.startswith("/") or ".." in member.name.split("/"):
            raise self.error(f"{member.name} points outside the archive", "plain names")
        if not member.isreg() or member.issparse():
            raise self.error(f"{member.name} is a link or not a plain file", "the picture itself")

    def error(self, problem: str, expected: str) -> UserError:
        return UserError(f"{self.path}, {problem}; pack the shard again with {expected}")

    def to_part(self, split: str) -> TablePart:
        for key, sample in self.samples.items():
            if not sample.name:
                raise self.error(f"{key} has a label but no picture", "both, or neither")
        samples = list(self.samples.values())
        names = tuple(dict.fromkeys(sample.label for sample in samples if sample.label))
        codes = {name: code for code, name in enumerate(names)}
        pictures = TarPictures(
            self.path,
            np.array([sample.start for sample in samples], np.int64),
            np.array([sample.size for sample in samples], np.int64),
            [sample.name for sample in samples],
        )
        labels = np.array([codes.get(sample.label, -1) for sample in samples], np.int64)
        return TablePart(split, pictures, labels, names)


def read_shard(path: Path) -> TablePart:
    """Index one shard; its split is the one that it is named after, such as test-000.tar."""
    if path.suffix.lower() != ".tar":
        raise UserError(
            f"{path} is compressed, so pictures cannot be found in it; unpack it to .tar"
        )
    shard = _Shard(path)
    try:
        require_regular(path)
        with tarfile.open(path, "r:") as tar:
            for member in tar:
                if not member.isdir() and not os.path.basename(member.name).startswith("."):
                    shard.add(tar, member)
                tar.members = []  # type: ignore[attr-defined]  # they would all stay in memory
            _require_end(path, tar.offset)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}; check the file") from None
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise UserError(
            f"{path} is not a tar file, or it is cut off ({error}); copy or pack it again"
        ) from None
    if not shard.samples:
        raise UserError(f"{path} has no pictures; pack files such as KEY.jpg and KEY.cls into it")
    return shard.to_part(split_of(path))


def split_name(name: str) -> tuple[str, str]:
    """Key and extension of a member: the name up to its first dot, and what follows."""
    folder, _, base = name.rpartition("/")
    stem, dot, rest = base.partition(".")
    return f"{folder}/{stem}" if folder else stem, (dot + rest).lower()


def _require_end(path: Path, offset: int) -> None:
    """A block of zeros ends a tar file; without it, `tarfile` takes a part for the whole."""
    with path.open("rb") as file:
        file.seek(offset)
        if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError(f"no member and no end at byte {offset}")
