"""CSV files as spreadsheets write them, and the errors for lines that cannot be used."""

from pathlib import Path

import pytest

from fullmatch.data import Source, load
from fullmatch.data.sources.tables import from_csv
from fullmatch.errors import UserError
from tests.data.conftest import Draw


@pytest.fixture
def folder(tmp_path: Path, draw_picture: Draw) -> Path:
    for name in ("a", "b", "c", "d", "deep/e", "f, g", "ü"):
        draw_picture(tmp_path / f"{name}.png")
    return tmp_path


def read(folder: Path, text: str | bytes) -> Source:
    content = text.encode() if isinstance(text, str) else text
    (folder / "list.csv").write_bytes(content)
    return load(str(folder / "list.csv"))


def test_labels_and_missing_labels(folder: Path) -> None:
    source = read(
        folder,
        "path,label\na.png,cat\nb.png,dog\nc.png,\nd.png,-1\ndeep/e.png,NaN\nü.png\n\n",
    )
    assert source.classes == ("cat", "dog")
    assert source.name == "list"
    assert source.labels.tolist() == [0, 1, -1, -1, -1, -1]


def test_written_by_a_spreadsheet(folder: Path) -> None:
    text = '\ufeffLabel , PATH\r\ncat,"f, g.png"\r\n dog ,deep\\e.png\r\n,ü.png\r\n'
    source = read(folder, text)
    assert source.classes == ("cat", "dog")
    assert source.labels.tolist() == [0, 1, -1]


def test_absolute_paths_and_test_rows(folder: Path) -> None:
    source = read(
        folder,
        f"path,label,split\n{folder}/a.png,1,\nb.png,2,train\nc.png,2,Test\nd.png,,unlabeled\n",
    )
    assert source.labels.tolist() == [0, 1, -1]
    assert source.test_labels is not None
    assert source.test_labels.tolist() == [1]


def test_same_line_twice_counts_once(folder: Path) -> None:
    source = read(folder, "path,label\na.png,x\n./a.png,x\nb.png,y\ndeep/../b.png,\n")
    assert source.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.png,cat\nb.png,dog\n", "first line must name the columns path and label"),
        ("path;label\na.png;cat\n", "separated by commas.*'path;label'"),
        ("", "first line must name"),
        ("path,label\n", "has no rows"),
        ("path,label\na.png,x\nb.png,y\na.png,y\n", "line 4: a.png is labeled 'x' and 'y'"),
        ("path,label\na.png,x\n,y\n", "line 3: no path"),
        ("path,label\na.png,x\nb.png,x\nc.png,\n", "only the class 'x'"),
        ("path,label\na.png,\n", "no labeled pictures"),
        ("path,label,split\na.png,x,val\n", "split is 'val'"),
        ("path,label,split\na.png,,test\n", "needs a label"),
        ("path,label,split\na.png,x,test\na.png,x,train\n", "for both test and training"),
        ("path,label,split\na.png,x,\nb.png,y,\nc.png,z,test\n", "class 'z' that no labeled"),
        ("path,label\na.png,x\nnowhere.png,y\n", "1 labeled picture cannot be read: .*nowhere"),
        ('path,label\n"a.png,x\n', "not a CSV file"),
        (b"path,label\n\xff\xfe.png,x\n", "not written in UTF-8"),
    ],
)
def test_rejected(folder: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read(folder, text)
    assert "\n" not in str(caught.value)


def test_missing_unlabeled_file_is_left_out(folder: Path) -> None:
    source = read(folder, "path,label\na.png,x\nb.png,y\nc.png,\nnowhere.png,\n")
    assert source.labels.tolist() == [0, 1, -1]
    assert "1 unreadable unlabeled picture left out" in source.notes[0]


def test_a_folder_instead_of_a_csv(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a regular file; give a CSV file"):
        from_csv(tmp_path)
