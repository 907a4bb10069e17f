"""Packed pictures are the same data as the folder they come from."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from fullmatch import data
from fullmatch.cli.app import main
from fullmatch.data.sources.packing import pack_pictures
from fullmatch.data.sources.shards import read_shard
from fullmatch.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes, unlabeled and test pictures of 32 x 32 pixels."""
    names = ["labeled/cat/0", "labeled/dog/1", "unlabeled/2", "unlabeled/3", "test/dog/4"]
    for number, name in enumerate(names):
        path = tmp_path / "pets" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 32), (40 * number, 9, 200)).save(path)
    return tmp_path / "pets"


def test_shards_are_the_same_data(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["pack", str(folder), str(tmp_path / "out")])
    output = capsys.readouterr().out
    assert "Packed 5 pictures into 2 shards" in output
    pattern = output.split("'")[1]
    before, after = data.load(str(folder)), data.load(pattern)
    assert before.classes == after.classes
    assert before.labels.equal(after.labels)
    assert before.images.read(torch.arange(4)).equal(after.images.read(torch.arange(4)))
    assert before.test is not None
    assert after.test is not None
    assert before.test.read(torch.tensor([0])).equal(after.test.read(torch.tensor([0])))


def test_shards_have_the_size_asked_for(folder: Path, tmp_path: Path) -> None:
    counts = pack_pictures(folder, tmp_path / "out", shard_bytes=1)
    assert list(counts.values()) == [1] * 5
    assert read_shard(tmp_path / "out" / "train-00001.tar").names == ("dog",)
    again = pack_pictures(folder, tmp_path / "again", shard_bytes=1)
    for name in again:
        contents = [(tmp_path / out / name).read_bytes() for out in ("out", "again")]
        assert contents[0] == contents[1]


def test_what_cannot_be_packed(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="exists already"):
        pack_pictures(folder, tmp_path)
    with pytest.raises(UserError, match="among your pictures"):
        pack_pictures(folder, folder / "shards")
    (folder / "labeled" / "nan").mkdir()
    (folder / "labeled" / "cat" / "0.png").rename(folder / "labeled" / "nan" / "0.png")
    with pytest.raises(UserError, match="cannot hold the class 'nan'"):
        pack_pictures(folder, tmp_path / "out")
    (folder / "labeled" / "nan" / "0.png").unlink()
    (folder / "labeled" / "nan" / "0.png").symlink_to("nowhere")
    (folder / "labeled" / "nan").rename(folder / "labeled" / "cat")
    with pytest.raises(UserError, match=r"cannot read .*0\.png: No such file"):
        pack_pictures(folder, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pets"]
