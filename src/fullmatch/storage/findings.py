"""findings.json: pictures of a run that a person should look at; needs no torch."""

from dataclasses import dataclass
from pathlib import Path

from fullmatch.storage.json_files import from_json, read_json

FORMAT = 1


@dataclass(frozen=True)
class SuspectPicture:
    """A picture whose label looks wrong."""

    row: int  # in features.safetensors
    name: str
    label: str
    looks_like: str  # the class that it looks like
    probability: float  # of that class, by a classifier that has not seen the label


@dataclass(frozen=True)
class OutlierPicture:
    """An unlabeled picture of another kind than the labeled ones."""

    row: int  # in features.safetensors
    name: str


@dataclass(frozen=True)
class RunFindings:
    """What features say about the pictures of a run, the most striking first."""

    suspect_labels: tuple[SuspectPicture, ...] = ()
    outliers: tuple[OutlierPicture, ...] = ()
    format: int = FORMAT

    @property
    def rows(self) -> list[int]:
        suspects = [picture.row for picture in self.suspect_labels]
        return suspects + [picture.row for picture in self.outliers]


def read_findings(path: Path) -> RunFindings:
    """`ValueError` says what is wrong with the file."""
    table = read_json(path)
    if table.get("format") != FORMAT:
        raise ValueError("another version of fullmatch wrote it")
    findings = from_json(RunFindings, table)
    if any(row < 0 for row in findings.rows):
        raise ValueError("rows are not positions")
    if not all(0 <= picture.probability <= 1 for picture in findings.suspect_labels):
        raise ValueError("probabilities are not between 0 and 1")
    return findings
