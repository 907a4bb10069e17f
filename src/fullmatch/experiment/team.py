"""Several processes that train as one: the first commands, and the others take the same steps.

The first process runs the command as if it were alone: it reads, plans, evaluates, writes and
prints. Whenever it is about to take a training step, it tells the others, which have built the same
state and read their own share of each batch. So all that trains can be spread over several GPUs,
and nothing is done twice.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

import torch

from fullmatch import distributed
from fullmatch.errors import UserError
from fullmatch.experiment.build import Assembly


def command(run: Callable[[], None]) -> NoReturn:
    """Does something in the first of several processes while the others help it to train."""
    refuse_unmet()
    code: object = None
    with distributed.process_group():
        try:
            if distributed.rank() > 0:
                help_out()
            else:
                run()
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
            code = 1
        if distributed.rank() == 0:
            with suppress(RuntimeError):  # one of them may be gone
                distributed.broadcast("end")
    sys.stdout.flush()
    sys.stderr.flush()
    # At once: threads of the library that connects processes were seen to abort an ordinary end.
    os._exit(code if isinstance(code, int) else int(code is not None))


def refuse_unmet() -> None:
    if "MASTER_ADDR" not in os.environ or "LOCAL_RANK" not in os.environ:
        raise UserError(
            "WORLD_SIZE says that there are several processes, but not where they meet; start "
            "them with torchrun, or unset WORLD_SIZE"
        )
    here, cards = int(os.environ.get("LOCAL_WORLD_SIZE", "1")), torch.cuda.device_count()
    if 0 < cards < here:
        raise UserError(
            f"{here} processes were started on a machine with {cards} GPU: give torchrun "
            f"--nproc-per-node {cards}, or no torchrun for a single one"
        )


def help_out() -> None:
    """Takes part in whatever the first process trains, until that ends."""
    # Ctrl-C goes to all: the first process decides, saves, and says when it is over.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    run: Assembly | None = None
    while (said := distributed.broadcast()) != "end":
        if isinstance(said, str):
            assert run is not None
            {"step": run.trainer.take_step, "read": run.state.totals.read}[said]()
        else:
            config, dataset, tensors, metrics, step = said
            run = Assembly(config, dataset, started="")
            run.state.load_state_dict(tensors, step=step, metrics=metrics)
            if run.state.totals.sums is not None:
                run.state.totals.sums.zero_()  # what was counted so far, the first process has
            run.state.train()
