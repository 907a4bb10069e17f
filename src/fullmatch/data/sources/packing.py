"""Write the pictures of a folder or CSV file into tar shards, which are read where they are."""

import io
import json
import os
import tarfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from fullmatch.data.sources.arrow_tables import parse_label
from fullmatch.data.sources.shards import LABEL_KEY
from fullmatch.data.sources.survey import survey_pictures
from fullmatch.data.stores.pictures import EXTENSIONS
from fullmatch.errors import UserError
from fullmatch.files.reading import UnusableFile, require_regular
from fullmatch.storage.atomic import explained_errors
from fullmatch.storage.private_folders import private_folder

SHARD_BYTES = 2**28
Item = tuple[str, str]  # the path of a picture, and its label or ''


def pack_pictures(place: Path, out: Path, *, shard_bytes: int = SHARD_BYTES) -> dict[str, int]:
    """Write train-00000.tar, test-00000.tar and so on; the number of pictures in each shard.

    The files are copied as they are, each opened once. `out` appears when all of it is written.
    """
    if out.exists() or out.is_symlink():
        raise UserError(f"{out} exists already; give the name of a new folder")
    if place.is_dir() and out.resolve().is_relative_to(place.resolve()):
        raise UserError(f"{out} would be among your pictures; name a folder elsewhere")
    survey = survey_pictures(place)
    parts = {
        "train": [*survey.labeled, *((path, "") for path in survey.unlabeled)],
        "test": survey.test,
    }
    root = place if place.is_dir() else place.parent
    counts: dict[str, int] = {}
    with explained_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with private_folder(out) as private:
            made = private / "shards"
            made.mkdir()
            for part, items in parts.items():
                counts |= write_shards(made / part, items, root, shard_bytes)
            made.rename(out)
    return counts


def write_shards(
    prefix: Path, items: Sequence[Item], root: Path, shard_bytes: int
) -> dict[str, int]:
    """Shards that are closed as soon as they have this size."""
    counts: dict[str, int] = {}
    with ExitStack() as shard:
        tar: tarfile.TarFile | None = None
        for number, (path, label) in enumerate(items):
            if tar is None or tar.offset >= shard_bytes:
                shard.close()
                file = prefix.with_name(f"{prefix.name}-{len(counts):05}.tar")
                tar = shard.enter_context(tarfile.open(file, "w", format=tarfile.PAX_FORMAT))
                counts[file.name] = 0
            add_picture(tar, f"{number:09}", path, label, root)
            counts[file.name] += 1
    return counts


def add_picture(tar: tarfile.TarFile, key: str, path: str, label: str, root: Path) -> None:
    """KEY.jpg, and KEY.json with its label and where it was."""
    extension = os.path.splitext(path)[1].lower()
    if extension not in EXTENSIONS:
        raise UserError(f"{path} has no name of a picture; end it in one such as .jpg")
    if parse_label(label) != label:
        raise UserError(f"a shard cannot hold the class {label!r} of {path}; rename the class")
    facts = {"path": os.path.relpath(path, root)} | ({LABEL_KEY: label} if label else {})
    try:
        require_regular(Path(path))
        content = Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}; check it") from None
    except UnusableFile as error:
        raise UserError(f"{path} {error}; remove it") from None
    for name, data in ((key + extension, content), (f"{key}.json", json.dumps(facts).encode())):
        member = tarfile.TarInfo(name)
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    tar.members = []  # type: ignore[attr-defined]  # they would all stay in memory
