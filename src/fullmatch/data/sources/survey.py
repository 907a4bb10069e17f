"""List the pictures of a folder or CSV file with their labels, without reading any of them."""

from pathlib import Path

from fullmatch.data.sources.folders import survey_folder
from fullmatch.data.sources.picture_files import PictureSurvey
from fullmatch.data.sources.tables import survey_csv
from fullmatch.errors import UserError


def survey_pictures(path: Path) -> PictureSurvey:
    """List the pictures of a folder or CSV file as training would, but keep the problems."""
    survey = survey_folder(path) if path.is_dir() else survey_csv(path)
    if not survey.labeled and not survey.unlabeled:
        raise UserError(f"no pictures to train on in {path}; add rows that are not for testing")
    return survey
