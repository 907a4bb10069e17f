"""The file of findings is read as it was written, and damage is reported."""

from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.storage.features import write_features
from fullmatch.storage.findings import OutlierPicture, RunFindings, SuspectPicture
from fullmatch.storage.json_files import write_json
from fullmatch.storage.run_folder import RunFolder
from tests.storage.test_features import some_features

FINDINGS = RunFindings(
    (SuspectPicture(3, "labeled/ä.png", "cat", "dog", 0.97),), (OutlierPicture(7, "7.png"),)
)


def test_round_trip(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.read_findings() is None
    write_json(folder.findings, FINDINGS)
    assert folder.findings.name == "findings.json"
    assert folder.read_findings() == FINDINGS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "not a table"),
        ('{"format": 9}', "another version of fullmatch wrote it"),
        (
            '{"format": 1, "outliers": [{"row": "a", "name": "b"}]}',
            r"outliers.row is not an integer",
        ),
        ('{"format": 1, "suspect_labels": 3}', "suspect_labels is not a list"),
        ('{"format": 1, "outliers": [{"row": -1, "name": "b"}]}', "rows are not positions"),
        (
            '{"format": 1, "suspect_labels": [{"row": 0, "name": "b", "label": "a", '
            '"looks_like": "c", "probability": 7}]}',
            "probabilities are not between 0 and 1",
        ),
    ],
)
def test_damage_is_one_line(tmp_path: Path, text: str, reason: str) -> None:
    folder = RunFolder(tmp_path)
    folder.findings.write_text(text)
    with pytest.raises(UserError, match=reason) as error:
        folder.read_findings()
    assert "\n" not in str(error.value)


def test_findings_about_more_pictures_than_there_are(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    write_features(folder.features, some_features())
    write_json(folder.findings, FINDINGS)
    with pytest.raises(UserError, match=r"about more pictures than features\.safetensors"):
        folder.read_findings()
