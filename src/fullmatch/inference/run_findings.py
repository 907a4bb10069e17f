"""Outliers and labels that look wrong among a run's pictures, by the features it has stored."""

import numpy as np
from numpy.typing import NDArray

from fullmatch.data.quality.photo_outliers import FAR_IN_EMBEDDINGS, find_photo_outliers
from fullmatch.data.quality.suspect_labels import find_suspect_labels
from fullmatch.storage.features import Part, PictureFeatures
from fullmatch.storage.findings import OutlierPicture, RunFindings, SuspectPicture
from fullmatch.storage.json_files import write_json
from fullmatch.storage.run_folder import RunFolder


def find_in_run(features: PictureFeatures) -> RunFindings:
    """The same judgment as that of `check`, from the features of training."""
    labeled, test = features.parts == Part.LABELED, features.parts == Part.TEST
    outliers = find_photo_outliers(features.features, labeled, FAR_IN_EMBEDDINGS)
    return RunFindings(
        # Labels of the test set do not help to judge those of training.
        suspect_labels=(
            *judge_labels(features, labeled, labeled),
            *judge_labels(features, labeled | test, test),
        ),
        outliers=tuple(
            OutlierPicture(row, features.names[row]) for row in outliers if not test[row]
        ),
    )


def judge_labels(
    features: PictureFeatures, known: NDArray[np.bool_], judged: NDArray[np.bool_]
) -> list[SuspectPicture]:
    if not judged.any():
        return []
    suspects = find_suspect_labels(features.features, np.where(known, features.labels, -1))
    return [
        SuspectPicture(
            row=suspect.at,
            name=features.names[suspect.at],
            label=features.classes[features.labels[suspect.at]],
            looks_like=features.classes[suspect.suggested],
            probability=round(suspect.probability, 4),
        )
        for suspect in suspects
        if judged[suspect.at]
    ]


def store_findings(folder: RunFolder) -> RunFindings | None:
    """Write the findings of a finished run, unless they are there; None without features."""
    if folder.findings.exists():
        return folder.read_findings()
    features = folder.read_features()
    if features is None:
        return None
    findings = find_in_run(features)
    write_json(folder.findings, findings)
    return findings
