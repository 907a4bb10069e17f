"""Fashion-MNIST as somebody's own pictures: what `fullmatch train` makes of a folder.

    python benchmarks/fashion.py [--labels 40 250] [--seeds 0] [--minutes 8] [-- OPTION ...]

Writes labeled/CLASS/*.png and unlabeled/*.png and trains with the command anybody would type, once
with test/CLASS/*.png beside them and once without, where accuracy is estimated on held-out labels
and the test pictures say afterwards how near that was. What stands after -- goes to the command.

Appends to docs/results/fashion.jsonl what is not there yet (remove the file to measure anew) and
writes docs/results/fashion.md from it. A line takes about the minutes it is given, and one more.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from fullmatch import data
from fullmatch.data import Source, Split, TensorStore
from fullmatch.data.sources.catalog import data_root
from fullmatch.errors import UserError
from fullmatch.experiment.settings import config_of
from fullmatch.inference.evaluate import evaluate_run
from fullmatch.storage.run_folder import RunFolder

RESULTS = Path(__file__).parents[1] / "docs" / "results"
COMMAND = (sys.executable, "-m", "fullmatch")
MEASURED = ("test folder", "held-out labels")
SETTINGS = ("labels", "seed", "measured", "unlabeled", "test", "minutes", "options")


def source_of(place: Path | None) -> Source:
    if data.DATASETS["fashion-mnist"].locate(data_root(place)) is None:
        raise UserError(
            f"no Fashion-MNIST in {data_root(place)}: apt install dataset-fashion-mnist, or name "
            "the folder of its four idx.gz files with --source"
        )
    return data.load("fashion-mnist", root=place, download=False)


def write_pictures(source: Source, split: Split, unlabeled: int, folder: Path) -> None:
    """The labeled pictures by class, and as many others, drawn by the seed of the split."""
    for at, label in zip(split.labeled, split.targets, strict=True):
        save(source.images, at, folder / "labeled" / plain(source.classes[label]))
    others = np.setdiff1d(np.arange(split.images), split.labeled)
    for at in np.random.default_rng(split.seed).permutation(others)[:unlabeled].tolist():
        save(source.images, at, folder / "unlabeled")


def write_test(source: Source, count: int, folder: Path) -> None:
    assert source.test_labels is not None
    for at, label in enumerate(source.test_labels[:count].tolist()):
        save(source.test, at, folder / "test" / plain(source.classes[label]))


def save(store: Any, at: int, folder: Path) -> None:
    assert isinstance(store, TensorStore)
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(store.images[at, 0].numpy()).save(folder / f"{at:05}.png")


def plain(name: str) -> str:
    """A class as a folder may be called: T-shirt, not T-shirt/top."""
    return name.partition("/")[0]


def measure(source: Source, wanted: dict[str, Any]) -> dict[str, Any]:
    """Write the folder, run the command, and read what it says of itself."""
    split = data.draw_split(
        source.labels, wanted["labels"], wanted["seed"], source.num_classes, source.name
    )
    with tempfile.TemporaryDirectory() as place:
        pictures, run = Path(place) / "fashion", RunFolder(Path(place) / "run")
        write_pictures(source, split, wanted["unlabeled"], pictures)
        if wanted["measured"] == MEASURED[0]:
            write_test(source, wanted["test"], pictures)
        options = ["--minutes", f"{wanted['minutes']:g}", "--seed", str(wanted["seed"])]
        options += ["--out", str(run.path), *shlex.split(wanted["options"])]
        started = time.perf_counter()
        subprocess.run([*COMMAND, "train", str(pictures), *options], check=True)
        seconds = time.perf_counter() - started
        result = json.loads(run.result.read_text(encoding="utf-8"))
        if wanted["measured"] == MEASURED[0]:
            found = on_test(result)
        else:
            write_test(source, wanted["test"], pictures)
            found = estimated(result["honest"], evaluate_run(run).scores.top1)
        return {
            **wanted,
            **found,
            "network": config_of(run).model.name,
            "steps": result["steps"],
            "seconds": round(seconds),
            "device": result["device"],
        }


def on_test(result: dict[str, Any]) -> dict[str, Any]:
    accuracy, compared = result["teacher"]["last"], result["labels_only"]
    return {
        "accuracy": accuracy,
        "interval": result["teacher"]["interval"],
        "labels_only": accuracy - compared["gain"],
        "gain": compared["gain"],
        "gain_interval": compared["interval"],
    }


def estimated(honest: dict[str, Any], truth: float) -> dict[str, Any]:
    return {
        "accuracy": honest["accuracy"],
        "interval": honest["interval"],
        "labels_only": honest["labels_only"]["accuracy"],
        "gain": honest["gain"]["gain"],
        "gain_interval": honest["gain"]["interval"],
        "truth": truth,
    }


def known(ledger: Path) -> list[dict[str, Any]]:
    if not ledger.exists():
        return []
    return [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]


def page(rows: list[dict[str, Any]]) -> str:
    """A table for every command that was measured."""
    lines = [
        "# Fashion-MNIST as a folder of pictures",
        "",
        "Written by `python benchmarks/fashion.py`. Labels are drawn evenly by the seed, which is",
        "also that of training; the unlabeled pictures are other training pictures. Accuracy of",
        "the averaged model at the end, in percent, and the same network on the labels alone, as",
        "the command tells them: measured on a test folder, or without one estimated on held-out",
        "labels. Beside an estimate stands the truth: the accuracy of the same model on the test",
        "pictures, which that run never saw. Intervals are of 95 %, from the pictures asked about;",
        "another seed moves the numbers as well. Seconds are those of the whole command.",
    ]
    for key in sorted({group(row) for row in rows}):
        minutes, options, unlabeled, test, device = key
        command = f"fullmatch train fashion --minutes {minutes:g} {options}".strip()
        some = [row for row in rows if group(row) == key]
        lines += [
            "",
            f"## `{command}`",
            "",
            f"{unlabeled:,} unlabeled and {test:,} test pictures; {device}.",
            "",
            "| labels | seed | measured on | accuracy | labels alone | difference | truth "
            "| network | steps | seconds |",
            "| ---: | ---: | --- | --- | ---: | --- | ---: | --- | ---: | ---: |",
            *map(line, sorted(some, key=lambda row: (row["labels"], row["seed"]))),
        ]
    return "\n".join(lines) + "\n"


def group(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("minutes", "options", "unlabeled", "test", "device"))


def line(row: dict[str, Any]) -> str:
    low, high = (f"{100 * bound:.1f}" for bound in row["interval"])
    less, more = (f"{100 * bound:+.1f}" for bound in row["gain_interval"])
    cells = [
        row["labels"],
        row["seed"],
        row["measured"],
        f"{100 * row['accuracy']:.1f} ({low} to {high})",
        f"{100 * row['labels_only']:.1f}",
        f"{100 * row['gain']:+.1f} ({less} to {more})",
        f"{100 * row['truth']:.1f}" if "truth" in row else "-",
        row["network"],
        f"{row['steps']:,}",
        f"{row['seconds']:,}",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[40, 250])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--unlabeled", type=int, default=6000)
    parser.add_argument("--test", type=int, default=10_000)
    parser.add_argument("--source", type=Path, help="folder of the four idx.gz files")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only-table", action="store_true")
    parser.add_argument("options", nargs="*", help="after --: options of fullmatch train")
    given = parser.parse_args(argv)
    given.results.mkdir(parents=True, exist_ok=True)
    ledger = given.results / "fashion.jsonl"
    wanted = [
        {
            "labels": labels,
            "seed": seed,
            "measured": measured,
            "unlabeled": given.unlabeled,
            "test": given.test,
            "minutes": given.minutes,
            "options": shlex.join(given.options),
        }
        for seed in given.seeds
        for labels in given.labels
        for measured in MEASURED
    ]
    done = [{name: row[name] for name in SETTINGS} for row in known(ledger)]
    missing = [] if given.only_table else [one for one in wanted if one not in done]
    if missing:
        try:
            source = source_of(given.source)
        except UserError as error:
            sys.exit(str(error))
        for one in missing:
            row = measure(source, one)
            with ledger.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    made = page(known(ledger))
    (given.results / "fashion.md").write_text(made, encoding="utf-8")
    print(made)


if __name__ == "__main__":
    main()
