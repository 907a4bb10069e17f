"""`fullmatch suggest`: which pictures to label next."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fullmatch.cli.parameters import Count
from fullmatch.errors import UserError, many

if TYPE_CHECKING:
    from PIL import Image

    from fullmatch.inference.suggestion import Opener, Suggestions
    from fullmatch.inference.trained_run import TrainedRun


@dataclass(frozen=True)
class UnlabeledPictures:
    """Pictures to choose from, by name, and how to open them."""

    names: list[str]
    open_image: "Opener"
    folder: Path | None  # that the files are in; None for images without files


def suggest(
    run: Path,
    *,
    number: Annotated[Count, Parameter(name=["--number", "-n"])] = 20,
    out: Path | None = None,
    indices: Annotated[bool, Parameter(negative=())] = False,
    overwrite: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Choose the unlabeled pictures most worth labeling: uncertain and varied ones.

    Parameters
    ----------
    run
        A finished run folder.
    number
        How many pictures.
    out
        Folder for the table, the contact sheet and the tasks for Label Studio. [default:
        suggestions in the run folder]
    indices
        For data without picture files: name images by their positions.
    overwrite
        Replace earlier suggestions in the folder.
    """
    from fullmatch.inference.suggestion import suggest_uncertain
    from fullmatch.inference.trained_run import TrainedRun

    trained = TrainedRun(run)
    folder = check_folder(out or run / "suggestions", overwrite)
    unlabeled = list_unlabeled(trained, indices=indices)
    suggestions = suggest_uncertain(
        trained, unlabeled.names, number, open_image=unlabeled.open_image
    )
    data = Path(trained.config.data.name).expanduser()
    if not suggestions.pictures:
        raise UserError(f"none of the unlabeled pictures of {data} can be read; check the files")
    written = write_files(folder, suggestions, unlabeled, trained)
    print(describe_choice(suggestions, len(unlabeled.names)))
    print(f"Written to {folder}: {', '.join(written)}")
    if unlabeled.folder is not None:
        command = shlex.join(["fullmatch", "label", str(data), "--run", str(run)])
        print(f"Label them in a browser: {command} -n {len(suggestions.pictures)}")


def check_folder(folder: Path, overwrite: bool) -> Path:
    """The folder to write to; `UserError` if something would be lost."""
    if folder.is_file():
        raise UserError(f"{folder} is a file; name a folder with --out, for several files")
    table = folder / "suggestions.csv"
    if table.exists() and not overwrite:
        raise UserError(f"{table} exists already; name another --out, or add --overwrite")
    return folder


def list_unlabeled(run: "TrainedRun", *, indices: bool) -> UnlabeledPictures:
    """The pictures of a run's data that have no label yet."""
    from fullmatch.data.sources.survey import survey_pictures
    from fullmatch.inference.thumbnails import open_picture
    from fullmatch.inference.trained_run import require_data

    require_data(run.config.data.name, run.folder.path)
    data = Path(run.config.data.name).expanduser()
    if indices:
        unlabeled = unlabeled_images(run)
    elif data.is_dir() or data.suffix.lower() == ".csv":
        folder = data if data.is_dir() else data.parent
        unlabeled = UnlabeledPictures(survey_pictures(data).unlabeled, open_picture, folder)
    else:
        raise UserError(
            f"{data} has no picture files; add --indices to get the positions of images instead"
        )
    if not unlabeled.names:
        raise UserError(f"{data} has no unlabeled pictures; there is nothing to suggest")
    return unlabeled


def unlabeled_images(run: "TrainedRun") -> UnlabeledPictures:
    """Positions of the images whose labels the run did not use."""
    import torch
    from PIL import Image

    from fullmatch.data import SemiDataset, Split

    source, split = run.source, run.folder.split
    dataset = SemiDataset.from_source(source, Split.load(split) if split.exists() else None)
    labeled = set(dataset.labeled.tolist())

    def open_image(name: str) -> "Image.Image":
        pixels = source.images.read(torch.tensor([int(name)]))[0].cpu().numpy()
        return Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))

    names = [str(at) for at in range(len(source.images)) if at not in labeled]
    return UnlabeledPictures(names, open_image, None)


def write_files(
    folder: Path, suggestions: "Suggestions", unlabeled: UnlabeledPictures, run: "TrainedRun"
) -> list[str]:
    """Write the table, the contact sheet and the Label Studio tasks; return their names."""
    from fullmatch.inference import contact_sheet as sheet
    from fullmatch.storage.atomic import explained_errors, write_text

    pictures, has_files = suggestions.pictures, unlabeled.folder is not None
    title = f"{many(pictures, 'picture')} to label next"
    texts = {
        "suggestions.csv": sheet.format_csv(pictures, folder if has_files else None),
        "contact-sheet.html": sheet.render_contact_sheet(
            title, pictures, open_image=unlabeled.open_image
        ),
    }
    if unlabeled.folder is not None:
        name = run.folder.path.resolve().name
        texts["labelstudio.json"] = sheet.format_label_studio_tasks(
            pictures, unlabeled.folder, name
        )
        texts["labelstudio.xml"] = sheet.format_label_studio_interface(run.classifier.classes)
    with explained_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name in reversed(texts):  # the table last, since its presence means that all are there
        write_text(folder / name, texts[name])
    return list(texts)


def describe_choice(suggestions: "Suggestions", total: int) -> str:
    """Describe the choice: '20 of 980 unlabeled pictures chosen; 3 more cannot be read'."""
    chosen, unreadable = len(suggestions.pictures), suggestions.unreadable
    if suggestions.sampled < total:
        details = f"; {suggestions.sampled:,} were looked at"
        details += f", of which {unreadable:,} cannot be read" if unreadable else ""
    else:
        total -= unreadable
        details = f"; {unreadable:,} more cannot be read" if unreadable else ""
    return f"{chosen} of {total:,} unlabeled pictures chosen{details}."
