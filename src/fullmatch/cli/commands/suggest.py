"""`fullmatch suggest`: which pictures to label next."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fullmatch.cli.parameters import Count
from fullmatch.display.terminal import print_line
from fullmatch.errors import UserError, pluralize

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


@dataclass(frozen=True)
class SuggestionTarget:
    """Where suggestions go, and what their files mention."""

    folder: Path
    classes: tuple[str, ...]
    run: str  # name of the run; '' without one


def suggest(
    place: Path,
    *,
    number: Annotated[Count, Parameter(name=["--number", "-n"])] = 20,
    out: Path | None = None,
    indices: Annotated[bool, Parameter(negative=())] = False,
    overwrite: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Choose the unlabeled pictures most worth labeling.

    With a run, those that its model is unsure of; without one, typical pictures of every kind that
    has no label yet.

    Parameters
    ----------
    place
        A finished run folder; or, before the first run, your pictures: a folder, or a CSV with
        path,label.
    number
        How many pictures.
    out
        Folder for the table, the contact sheet and the tasks for Label Studio. [default:
        suggestions in the run folder, or in the current folder without a run]
    indices
        For data without picture files: name images by their positions.
    overwrite
        Replace earlier suggestions in the folder.
    """
    from fullmatch.storage.run_folder import RunFolder

    place = place.expanduser()
    if RunFolder(place).started or not place.exists():
        suggest_with_model(
            place, number, check_folder(out or place / "suggestions", overwrite), indices
        )
        return
    if indices:
        raise UserError("--indices is for runs on data without picture files; leave it out")
    folder = check_folder(out or Path("suggestions"), overwrite)
    if place.is_dir() and folder.resolve().is_relative_to(place.resolve()):
        raise UserError(f"{folder} is inside your folder of pictures; choose another --out")
    suggest_first(place, number, folder)


def suggest_with_model(run: Path, number: int, folder: Path, indices: bool) -> None:
    from fullmatch.cli.changes import noting_changes
    from fullmatch.inference.suggestion import suggest_uncertain
    from fullmatch.inference.trained_run import TrainedRun

    with noting_changes(run):
        trained = TrainedRun(run)
        unlabeled = list_unlabeled(trained, indices=indices)
        suggestions = suggest_uncertain(
            trained, unlabeled.names, number, open_image=unlabeled.open_image
        )
    data = Path(trained.config.data.name).expanduser()
    target = SuggestionTarget(
        folder, trained.classifier.classes, trained.folder.path.resolve().name
    )
    report_suggestions(target, suggestions, unlabeled, data, ["--run", str(run)])


def suggest_first(data: Path, number: int, folder: Path) -> None:
    """Without a model."""
    from fullmatch.data.dataset import sort_classes
    from fullmatch.display.stages import show_stages
    from fullmatch.inference.first_suggestion import suggest_typical
    from fullmatch.inference.thumbnails import open_picture
    from fullmatch.labeling.label_table import list_pictures

    survey = list_pictures(data)
    if not survey.unlabeled:
        raise UserError(f"{data} has no unlabeled pictures; there is nothing to suggest")
    labeled = [path for path, _ in survey.labeled]
    with show_stages() as stages:
        suggestions = suggest_typical(
            survey.unlabeled, number, labeled=labeled, progress=stages.begin("features")
        )
    home = data if data.is_dir() else data.parent
    unlabeled = UnlabeledPictures(survey.unlabeled, open_picture, home)
    target = SuggestionTarget(folder, sort_classes(label for _, label in survey.labeled), "")
    report_suggestions(target, suggestions, unlabeled, data, [])


def report_suggestions(
    target: SuggestionTarget,
    suggestions: "Suggestions",
    unlabeled: UnlabeledPictures,
    data: Path,
    flags: Sequence[str],
) -> None:
    """Write the files, and say how to go on."""
    if not suggestions.pictures:
        raise UserError(f"none of the unlabeled pictures of {data} can be read; check the files")
    written = write_files(target, suggestions, unlabeled)
    print_line(describe_choice(suggestions, len(unlabeled.names)))
    print_line(f"Chosen by {suggestions.basis}.")
    print_line(f"Written to {target.folder}: {', '.join(written)}")
    if unlabeled.folder is not None:
        command = shlex.join(["fullmatch", "label", str(data), *flags])
        print_line(f"Label them in a browser: {command} -n {len(suggestions.pictures)}")


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
    target: SuggestionTarget, suggestions: "Suggestions", unlabeled: UnlabeledPictures
) -> list[str]:
    """Write the table, the contact sheet and the Label Studio tasks; return their names."""
    from fullmatch.inference import contact_sheet as sheet
    from fullmatch.storage.atomic import explained_errors, write_text

    pictures, has_files = suggestions.pictures, unlabeled.folder is not None
    title = f"{pluralize(pictures, 'picture')} to label next"
    texts = {
        "suggestions.csv": sheet.format_csv(pictures, target.folder if has_files else None),
        "contact-sheet.html": sheet.render_contact_sheet(
            title, pictures, open_image=unlabeled.open_image
        ),
    }
    if unlabeled.folder is not None:
        texts["labelstudio.json"] = sheet.format_label_studio_tasks(
            pictures, unlabeled.folder, target.run
        )
    if unlabeled.folder is not None and target.classes:
        texts["labelstudio.xml"] = sheet.format_label_studio_interface(target.classes)
    with explained_errors(target.folder):
        target.folder.mkdir(parents=True, exist_ok=True)
    for name in reversed(texts):  # the table last, since its presence means that all are there
        write_text(target.folder / name, texts[name])
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
