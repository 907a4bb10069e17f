"""Which pictures there are and what is known of each, before any of them is decoded."""

from pathlib import Path

from fullmatch.data.sources.folders import survey_folder
from fullmatch.data.sources.listing import Survey
from fullmatch.data.sources.tables import survey_csv
from fullmatch.errors import UserError


def survey(path: Path) -> Survey:
    """The pictures of a folder or a CSV, told apart as training tells them apart."""
    found = survey_folder(path) if path.is_dir() else survey_csv(path)
    if not found.labeled and not found.unlabeled:
        raise UserError(f"no pictures in {path}; expected rows to train on")
    return found
