"""What a person sees in the terminal: bars, tables and plain sentences."""

from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from fullmatch.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from fullmatch.experiment.run import Run
    from fullmatch.training.trainer import Record

console = Console(highlight=False)


def say(sentence: str) -> None:
    """A sentence for the user."""
    console.print(sentence, style="dim", markup=False, soft_wrap=True)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


class ProgressBar:
    """Steps, time left, loss, share of unlabeled images in use, k; lines outside a terminal."""

    def __init__(self, run: "Run") -> None:
        self.total = run.config.training.steps
        self.line_every = max(1, self.total // 10)
        self.next_line = 0
        self.live = console.is_terminal
        self.progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[words]}"),
            console=console,
            disable=not self.live,
        )
        from fullmatch.experiment.settings import display_name

        name = display_name(run.config.algorithm)
        self.task = self.progress.add_task(
            name, total=self.total, completed=run.state.step, words=""
        )
        self.name = name
        # Steps and seconds at the last record; none yet where the first waits for a compiler.
        self.before = (run.state.step, 0.0) if run.eager else None

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.progress.stop()

    def show(self, record: "Record") -> None:
        if not record.metrics:
            return
        words = self.words(record)
        self.progress.update(self.task, completed=record.step, words=words)
        if not self.live and (record.step >= self.next_line or record.step == self.total):
            parts = (f"{self.name} {record.step}/{self.total}", self.left(record), words)
            print("  ".join(filter(None, parts)), flush=True)
            self.next_line = record.step + self.line_every
        self.before = (record.step, record.seconds)

    def left(self, record: "Record") -> str:
        """How long it will take, judged by the newest steps; nothing before these are known."""
        if self.before is None:
            return ""
        steps, seconds = record.step - self.before[0], record.seconds - self.before[1]
        return f"{seconds / max(1, steps) * (self.total - record.step):.0f} s left"

    def words(self, record: "Record") -> str:
        found = record.metrics
        parts = [f"loss {found['loss']:.3f}"]
        if "selected" in found:
            parts.append(f"used {100 * found['selected']:.0f} %")
        if "k" in found:
            parts.append(f"k {found['k']:.1f}")
        if record.evaluation:
            self.accuracy = f"test {percent(record.evaluation['teacher'].top1)}"
        if hasattr(self, "accuracy"):
            parts.append(self.accuracy)
        return "  ".join(parts)


class Listing:
    """Columns of plain text, as wide as their words, so that a listing can be searched."""

    def __init__(self, *headings: str) -> None:
        self.rows = [headings]

    def add(self, *cells: str) -> None:
        self.rows.append(cells)

    def show(self) -> None:
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        for number, row in enumerate(self.rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            line = "  ".join(cells).rstrip()
            console.print(line, style="" if number else "bold", markup=False, soft_wrap=True)


def show_result(folder: RunFolder) -> None:
    """Accuracies with their intervals, how they were chosen, and what was written."""
    from fullmatch.report.sentences import subject
    from fullmatch.storage.runs import any_unlabeled

    result = folder.read_result()
    if "teacher" in result:
        name = escape(result["data"])
        table = Table(title=f"{name}, {result['labels']} labels, test accuracy")
        table.add_column("trained on")
        table.add_column("accuracy", justify="right")
        table.add_column("95 % interval", justify="right")
        baseline = RunFolder(folder.path / "labels-only")
        if baseline.result.exists():
            alone = baseline.read_result()["teacher"]
            table.add_row("the labels only", percent(alone["last"]), interval(alone["interval"]))
        ours = result["teacher"]
        none = not any_unlabeled(result)
        unlabeled = "the labels, as unlabeled too" if none else "labels and unlabeled images"
        if result["algorithm"]["name"] == "supervised":
            unlabeled = "the labels only"
        table.add_row(unlabeled, percent(ours["last"]), interval(ours["interval"]))
        console.print(table)
        if "labels_only" in result:
            found = result["labels_only"]
            low, high = (f"{100 * bound:+.1f}" for bound in found["interval"])
            print(
                f"{subject(result)} {found['verdict']}: {100 * found['gain']:+.1f} points "
                f"(95 % interval {low} to {high})."
            )
        if "median_last_20" in ours:
            print(
                f"Accuracy is of the averaged model at the end; median of the last 20 evaluations "
                f"{percent(ours['median_last_20'])}; best, chosen on test, "
                f"{percent(ours['best_chosen_on_test'])}."
            )
    else:
        print(
            result["honest"]["sentence"]
            if "honest" in result
            else "No test images, so no accuracy: add test/CLASS/* and run: fullmatch evaluate"
        )
    print(f"Trained in {result['seconds']:.0f} s. Written to {folder.path}:")
    for name in ("model.safetensors", "result.json", "metrics.jsonl", "config.toml"):
        print(f"  {folder.path / name}")
    if (folder.path / "labels-only").exists():
        print(f"  {folder.path / 'labels-only'}/")


def interval(bounds: list[float]) -> str:
    return f"{100 * bounds[0]:.1f} to {100 * bounds[1]:.1f}"


def show_scores(found: dict[str, Any]) -> None:
    table = Table(title=f"{escape(found['data'])}, {found['images']} test images")
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_row("accuracy", f"{percent(found['top1'])} ({interval(list(found['interval']))})")
    if found["top5"] is not None:
        table.add_row("top-5 accuracy", percent(found["top5"]))
    table.add_row("calibration error", percent(found["ece"]))
    for name, share in zip(found["classes"], found["per_class"], strict=True):
        table.add_row(f"class {escape(name)}", "no images" if share is None else percent(share))
    console.print(table)


def list_algorithms() -> None:
    from fullmatch.algorithms import ALGORITHMS, ALIASES, About, algorithm

    listing = Listing("name", "paper", "year", "idea", "views", "memory", "full-")
    for name in ALGORITHMS:
        spec = algorithm(name)
        full = "yes" if hasattr(spec, "with_full") else "-"
        # Neither is needed to train, so somebody's own method may lack them.
        about = getattr(spec, "about", About("-", 0, "-", "-"))
        views = getattr(spec, "views", None)
        seen = "-" if views is None else " + ".join(views.unlabeled) or "labeled only"
        year = str(about.year) if about.year else "-"
        listing.add(name, about.paper, year, about.idea, seen, about.memory, full)
    listing.show()
    aliases = ", ".join(f"{alias} = {target}" for alias, target in ALIASES.items())
    print(f"full-NAME adds the entropy meaning and adaptive negative losses; {aliases}.")


def list_datasets() -> None:
    from fullmatch.data.sources.catalog import DATASETS, data_root

    listing = Listing("name", "classes", "training", "test", "size", "files")
    for name, facts in DATASETS.items():
        channels, height, width = facts.shape
        size = f"{height}x{width} {'grey' if channels == 1 else 'colour'}"
        files = "embedded" if facts.embedded else "found" if facts.present() else "not here"
        listing.add(
            name, str(facts.num_classes), f"{facts.train:,}", f"{facts.test:,}", size, files
        )
    listing.show()
    print(f"Files are looked for in {data_root().absolute()}; to change it: FULLMATCH_DATA=FOLDER")
    print("Or your own pictures: a folder with labeled/CLASS/* and unlabeled/*, a CSV, an NPZ.")


def list_models() -> None:
    from fullmatch.models import MODELS

    listing = Listing("name", "what it is")
    for name, words in MODELS.items():
        listing.add(name, words)
    listing.show()


def show_rounds(folders: list[RunFolder]) -> None:
    """What each round of self-training reached."""
    listing = Listing("round", "accuracy", "95 % interval", "folder")
    for number, folder in enumerate(folders, start=1):
        found = folder.read_result().get("teacher")
        share, bounds = ("-", "-")
        if found is not None:
            share, bounds = percent(found["last"]), interval(found["interval"])
        listing.add(str(number), share, bounds, str(folder.path))
    listing.show()
