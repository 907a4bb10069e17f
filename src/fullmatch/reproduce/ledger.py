"""The ledger: one JSON file a finished run, small enough to keep beside the code."""

import itertools
import json
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fullmatch.config import read_toml
from fullmatch.errors import UserError
from fullmatch.reproduce import provenance
from fullmatch.storage.atomic import aside
from fullmatch.storage.run_folder import RunFolder

POINTS = 200  # of a curve, at most
DIGITS = 5  # that a number of a curve keeps
SCORES = ("last", "median_last_20", "best_chosen_on_test", "interval", "top5", "ece", "per_class")
PEOPLE = ("student", "teacher")
FORMAT = 1
# Of an entry, to be of use, and of its settings.
NEEDED = (
    *("name", "date", "command", "commit", "dirty", "code", "steps", "seconds", "device"),
    *("steps_per_second", "classes", "scores", "curves"),
)
RESULT = {"config", "split", "steps", "seconds", "device", "versions", "notes", "classes"}
SETTINGS = ("data", "algorithm", "model", "seed")
SAID = ("commit", "dirty", "code", "date", "notes")  # about a result, and no part of it

Curve = list[list[float]]  # [steps, values]


def record(
    folder: Path,
    *,
    commit: str | None = None,
    dirty: bool = False,
    notes: Sequence[str] = (),
    fresh: bool = False,
) -> dict[str, Any]:
    """The ledger's entry of a finished run.

    `fresh` says that the code at hand made the run; otherwise `commit` may say which code did
    (`dirty`: with changes that were not committed). Without either the code counts as unknown.
    """
    run = RunFolder.existing(folder)
    result = run.read_result()
    if not result.keys() >= RESULT:
        raise UserError(
            f"{run.result} is damaged; delete it, then write it anew with: {run.resume_command}"
        )
    try:
        records = run.records()
    except ValueError:
        raise UserError(f"{folder} has a damaged metrics.jsonl; train it again") from None
    config = read_toml(run.config)
    config["data"].pop("root", None)  # where one machine keeps its files
    code: dict[str, Any] = {"commit": commit, "dirty": None, "code": None}
    if commit is not None:
        code["commit"] = provenance.full_hash(commit)
        code |= {"dirty": dirty, "code": None if dirty else provenance.code_hash_of(commit)}
    elif fresh:
        code |= provenance.checkout() | {"code": provenance.CODE}
    finished = datetime.fromtimestamp(run.result.stat().st_mtime, UTC)
    return {
        "format": FORMAT,
        "name": folder.resolve().name,
        "date": finished.strftime("%Y-%m-%d"),
        "command": provenance.command(config),
        **code,
        "fingerprint": result["config"],
        "split": result["split"],
        "steps": result["steps"],
        "seconds": result["seconds"],
        "steps_per_second": steps_per_second(records),
        "device": result["device"],
        "versions": result["versions"],
        "notes": [*result["notes"], *notes],
        "config": config,
        "classes": result["classes"],
        "scores": {who: scores(result, records, who) for who in PEOPLE if who in result},
        "curves": {name: thinned(curve) for name, curve in curves(records).items()},
    }


def scores(result: dict[str, Any], records: Sequence[dict[str, Any]], who: str) -> dict[str, Any]:
    """Final scores of student or teacher, and the top-5 accuracy where top-1 was best."""
    found = {name: result[who][name] for name in SCORES if name in result[who]}
    seen = [line["evaluation"][who] for line in records if "evaluation" in line]
    if seen and "top5" in seen[0]:
        found["top5_at_best"] = max(seen, key=lambda each: each["top1"])["top5"]
    return found


def curves(records: Sequence[dict[str, Any]]) -> dict[str, Curve]:
    """Every metric of a run as steps and values; evaluations by name, such as teacher.top1."""
    found: dict[str, Curve] = {}
    for line in records:
        flat = provenance.flat({k: v for k, v in line.items() if k not in ("step", "evaluation")})
        for name, value in (flat | provenance.flat(line.get("evaluation", {}))).items():
            steps, values = found.setdefault(name, [[], []])
            steps.append(line["step"])
            values.append(value)
    return found


def thinned(curve: Curve, points: int = POINTS) -> Curve:
    """At most so many points, evenly spread, the first and the last among them."""
    steps, values = curve
    count = len(steps)
    kept = range(count)
    if count > points:
        kept = [round(i * (count - 1) / (points - 1)) for i in range(points)]  # type: ignore[assignment]
    return [[steps[i] for i in kept], [significant(values[i]) for i in kept]]


def significant(value: float) -> float:
    if isinstance(value, int) or not math.isfinite(value):
        return value
    return float(f"{value:.{DIGITS}g}")


def steps_per_second(records: Sequence[dict[str, Any]]) -> float | None:
    """The usual speed: the median between two lines of the log, so starting up is not in it."""
    pairs = itertools.pairwise(records)
    spans = [(b["step"] - a["step"], b["seconds"] - a["seconds"]) for a, b in pairs]
    speeds = [steps / seconds for steps, seconds in spans if seconds > 0]
    return significant(statistics.median(speeds)) if speeds else None


@dataclass(frozen=True)
class Ledger:
    """A folder of entries."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def has(self, name: str) -> bool:
        return self.path(name).exists()

    def add(self, entry: dict[str, Any]) -> Path:
        """Write an entry; another result of the same name is never overwritten."""
        path = self.path(entry["name"])
        if path.exists() and (old := read(path)) != entry:
            raise taken(path, old, entry)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with aside(path) as place:
                place.write_text(dumped(entry), encoding="utf-8")
        except OSError as error:
            raise UserError(
                f"cannot write {path}: {error.strerror}; mend that, and record again"
            ) from None
        return path

    def entries(self) -> list[dict[str, Any]]:
        """All entries, by name."""
        if self.folder.is_file():
            raise UserError(f"{self.folder} is a file; the ledger is a folder of results")
        return [read(path) for path in sorted(self.folder.glob("*.json"))]


def taken(path: Path, old: dict[str, Any], new: dict[str, Any]) -> UserError:
    """Why an entry is not overwritten: by another result, or by other words about the same."""
    differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if not set(differing) <= set(SAID):
        return UserError(
            f"{path} holds another result already; rename the run folder, or remove the file"
        )

    def known(value: Any) -> Any:
        return "unknown" if value is None else value

    words = [
        f"{name} {known(old.get(name))} instead of {known(new.get(name))}"
        for name in differing
        if name != "notes"
    ]
    words += ["other notes"] if "notes" in differing else []
    return UserError(
        f"{path} holds the same result already, with {', '.join(words)}; "
        "if the new is right, remove the file and record again"
    )


def read(path: Path) -> dict[str, Any]:
    try:
        entry: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if entry["format"] != FORMAT:
            raise UserError(f"{path} was written by another version of fullmatch; record it anew")
        config = entry["config"]
        missing = [*(set(NEEDED) - entry.keys()), *(set(SETTINGS) - config.keys())]
        if missing or not (config["data"]["name"] and config["algorithm"]["name"]):
            raise KeyError(*missing)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check its path") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path} is no entry of the ledger; remove it, or record it anew") from None
    return entry


def dumped(entry: dict[str, Any]) -> str:
    """JSON with a line a fact and a line a curve, so that a change shows where it is."""
    return "{\n" + ",\n".join(_lines(entry)) + "\n}\n"


def _lines(entry: dict[str, Any]) -> Iterator[str]:
    for name, value in entry.items():
        if name in ("config", "curves", "scores"):
            inner = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            yield f' "{name}": {{\n{inner}\n }}'
        else:
            yield f' "{name}": {json.dumps(value)}'
