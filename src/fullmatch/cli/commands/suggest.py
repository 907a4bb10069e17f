"""`fullmatch suggest`: which pictures to label next."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fullmatch.cli.parameters import Count
from fullmatch.errors import UserError, many

if TYPE_CHECKING:
    from PIL import Image

    from fullmatch.inference.suggestion import Opener
    from fullmatch.inference.trained_run import TrainedRun


def suggest(
    run: Path,
    *,
    number: Annotated[Count, Parameter(name=["--number", "-n"])] = 20,
    out: Path | None = None,
    indices: Annotated[bool, Parameter(negative=())] = False,
    overwrite: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Choose the unlabeled pictures that are most worth labeling: unsure ones, of many kinds.

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
        Replace earlier suggestions there.
    """
    from fullmatch.data.sources.survey import survey
    from fullmatch.inference import contact_sheet as sheet
    from fullmatch.inference.suggestion import LOOKED_AT, unsure
    from fullmatch.inference.thumbnails import open_file
    from fullmatch.inference.trained_run import TrainedRun, refuse_gone
    from fullmatch.storage.atomic import told, write

    trained = TrainedRun(run)
    folder = out or run / "suggestions"
    if folder.is_file():
        raise UserError(f"{folder} is a file; name a folder with --out, several files go there")
    target = folder / "suggestions.csv"
    if target.exists() and not overwrite:
        raise UserError(f"{target} exists already; name another --out, or add --overwrite")
    refuse_gone(trained.config.data.name, run)
    data = Path(trained.config.data.name).expanduser()
    opened: Opener = open_file
    if indices:
        names, opened = unlabeled_images(trained)
    elif data.is_dir() or data.suffix.lower() == ".csv":
        names = survey(data).unlabeled
    else:
        raise UserError(
            f"{data} has no picture files; add --indices to get the positions of images instead"
        )
    if not names:
        raise UserError(f"{data} has no unlabeled pictures; there is nothing to suggest")
    unread: list[str] = []
    found = unsure(trained, names, number, opened=opened, unread=unread)
    if not found:
        raise UserError(f"none of the unlabeled pictures of {data} can be read; check the files")

    title = f"{many(found, 'picture')} to label next"
    texts = {
        "suggestions.csv": sheet.table(found, None if indices else folder),
        "contact-sheet.html": sheet.contact_sheet(title, found, opened=opened),
    }
    if not indices:
        home = data if data.is_dir() else data.parent
        texts["labelstudio.json"] = sheet.label_studio_tasks(found, home, run.resolve().name)
        texts["labelstudio.xml"] = sheet.label_studio_interface(trained.classifier.classes)
    with told(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name in reversed(texts):  # the table last, since it tells that the others are there
        write(folder / name, texts[name])
    if len(names) > LOOKED_AT:
        total, looked = len(names), f"; {LOOKED_AT:,} were looked at"
        looked += f", of which {len(unread):,} cannot be read" if unread else ""
    else:
        total = len(names) - len(unread)
        looked = f"; {len(unread):,} more cannot be read" if unread else ""
    print(f"{len(found)} of {total:,} unlabeled pictures chosen{looked}.")
    print(f"Written to {folder}: {', '.join(texts)}")
    if not indices:
        words = shlex.join(["fullmatch", "label", str(data), "--run", str(run)])
        print(f"Label them in a browser: {words} -n {len(found)}")


def unlabeled_images(run: "TrainedRun") -> tuple[list[str], "Opener"]:
    """Positions of the images whose labels the run did not see, and how to open them."""
    import torch
    from PIL import Image

    from fullmatch.data import SemiDataset, Split

    source, split = run.source, run.folder.split
    labeled = SemiDataset.of(source, Split.load(split) if split.exists() else None).labeled
    known = set(labeled.tolist())

    def opened(name: str) -> "Image.Image":
        pixels = source.images.read(torch.tensor([int(name)]))[0].cpu().numpy()
        return Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))

    return [str(at) for at in range(len(source.images)) if at not in known], opened
