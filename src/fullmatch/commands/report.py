"""`fullmatch report`: one page that says how a run went, or sets several beside each other."""

from pathlib import Path
from typing import TYPE_CHECKING

from fullmatch.errors import UserError

if TYPE_CHECKING:
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

    runs = [read_run(path) for path in (run, *others)]
    if len(runs) > 1:
        path = out or Path("report.html")
        text = page.comparison(runs)
    else:
        path = out or run / "report.html"
        pictures, missing = pictures_of(runs[0])
        text = page.report(runs[0], pictures, missing)
    write(path, text)
    print(f"Written to {path}")


def pictures_of(run: "Run") -> tuple["Pictures | None", str]:
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
        source = data.load(asked["name"], root=root, size=asked.get("size"), download=False)
    except UserError as error:
        return None, f"The test pictures cannot be shown: {error}."
    store, labels = source.test, source.test_labels
    if store is None or labels is None or labels.tolist() != run.predictions.labels.tolist():
        return None, "The test pictures cannot be shown: they are no longer those of this run."

    def image(at: int) -> Image.Image:
        pixels = store.read(torch.tensor([at]))[0].cpu().numpy()
        return Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))

    paths = getattr(store, "paths", None)

    def name(at: int) -> str:
        return Path(paths[at]).name if paths else f"number {at}"

    return Pictures(image, name), ""
