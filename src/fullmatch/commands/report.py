"""`fullmatch report`: one page that says how a run went, or sets several beside each other."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from fullmatch.errors import UserError

if TYPE_CHECKING:
    from fullmatch.data import Source
    from fullmatch.report.gallery import Pictures
    from fullmatch.report.runs import Run


def report(run: Path, *others: Path, out: Path | None = None) -> None:
    """Write a page about a run, or one that compares several; it opens in any browser.

    Parameters
    ----------
    run
        A run folder, finished or not.
    others
        More run folders, to compare with.
    out
        The file to write. [default: report.html in the run folder; of several runs, report.html
        in the current folder]
    """
    from fullmatch.report import page
    from fullmatch.report.frame import write
    from fullmatch.report.runs import read_run

    if not others:
        path = written(run, out or run / "report.html")
    else:
        path = out or Path("report.html")
        write(path, page.comparison([read_run(each) for each in (run, *others)]))
    print(f"Written to {path}")


def report_beside(run: Path, source: "Source | None" = None) -> None:
    """The page at the end of a training; a page that fails takes nothing from the run."""
    try:
        print(f"See how it went: {written(run, run / 'report.html', source)}")
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        print(f"No page about this run ({reason}); try: fullmatch report {shlex.quote(str(run))}")


def written(folder: Path, path: Path, source: "Source | None" = None) -> Path:
    """Write the page of one run; `source` saves reading its pictures again."""
    from fullmatch.report import page
    from fullmatch.report.frame import write
    from fullmatch.report.runs import read_run

    run = read_run(folder)
    write(path, page.report(run, *pictures_of(run, source)))
    return path


def pictures_of(run: "Run", source: "Source | None" = None) -> tuple["Pictures | None", str]:
    """The test pictures a run was measured on, or a sentence about why they cannot be shown."""
    if run.predictions is None:
        return None, ""
    import torch
    from PIL import Image

    from fullmatch import data
    from fullmatch.report.gallery import Pictures

    asked = run.config["data"]
    root = Path(asked["root"]) if "root" in asked else None
    try:
        source = source or data.load(
            asked["name"], root=root, size=asked.get("size"), download=False
        )
    except UserError as error:
        return None, f"The test pictures cannot be shown: {error}."
    store, labels = source.test, source.test_labels
    if store is None or labels is None or labels.tolist() != run.predictions.labels.tolist():
        return None, "The test pictures cannot be shown: they are no longer those of this run."

    def image(at: int) -> Image.Image:
        pixels = store.read(torch.tensor([at]))[0].cpu().numpy()
        return Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))

    paths = getattr(store, "paths", ())

    def name(at: int) -> str:
        return short(Path(paths[at]), Path(asked["name"])) if paths else f"number {at}"

    return Pictures(image, name), ""


def short(path: Path, data: Path) -> str:
    """A picture as somebody who knows the data would name it, from its folder or CSV on."""
    home = (data if data.is_dir() else data.parent).absolute()
    path = path.absolute()
    return (path.relative_to(home) if path.is_relative_to(home) else path).as_posix()
