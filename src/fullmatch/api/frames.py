"""Tables as data frames, where pandas is installed."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fullmatch.errors import UserError
from fullmatch.storage.metrics_log import LogRecord

if TYPE_CHECKING:
    import pandas


def make_frame(rows: Sequence[Mapping[str, Any]]) -> "pandas.DataFrame":
    """A data frame of these rows; a missing value is NaN."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise UserError(
            "data frames need pandas; install it with: pip install 'fullmatch[notebook]'"
        ) from None
    return pandas.DataFrame(rows)


def metrics_table(records: Iterable[LogRecord]) -> list[dict[str, float]]:
    """One row per record; scores of an evaluation are columns such as teacher.top1."""
    return [
        {"step": record.step, **record.metrics}
        | {
            f"{who}.{name}": value
            for who, scores in record.evaluation.items()
            for name, value in scores.items()
        }
        | {"seconds": record.seconds}
        for record in records
    ]
