"""Several processes that train as one; in a single process all of this does nothing.

`collectives` is what algorithms use, `processes` what a run uses.
"""

from fullmatch.distributed.collectives import (
    alone,
    gather,
    maximum,
    mean,
    own_rows,
    rank,
    total,
    world_size,
)
from fullmatch.distributed.processes import (
    first_then_others,
    is_first,
    may_restart,
    on_first,
    process_group,
    require_same,
    restarted,
)

__all__ = [
    "alone",
    "first_then_others",
    "gather",
    "is_first",
    "maximum",
    "may_restart",
    "mean",
    "on_first",
    "own_rows",
    "process_group",
    "rank",
    "require_same",
    "restarted",
    "total",
    "world_size",
]
