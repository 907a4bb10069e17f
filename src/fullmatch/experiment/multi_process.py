"""Several processes that train as one: the first decides, the others take the same steps.

The first process runs the command as usual: it reads, plans, evaluates, writes and prints. Before
each training step it tells the others, which have built the same state and read their own share of
each batch. So all training can be spread over several GPUs, and nothing is done twice.
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
from fullmatch.experiment.build import Announcement, Assembly

END = "end"


def run_in_first_process(run: Callable[[], None]) -> NoReturn:
    """Call `run` in the first of several processes while the others help it to train."""
    check_launch()
    code: object = None
    with distributed.process_group():
        try:
            if distributed.rank() > 0:
                follow_first_process()
            else:
                run()
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
            code = 1
        if distributed.rank() == 0:
            with suppress(RuntimeError):  # one of them may be gone
                distributed.broadcast(END)
    sys.stdout.flush()
    sys.stderr.flush()
    # Without cleanup: threads of the library that connects processes sometimes abort it.
    os._exit(code if isinstance(code, int) else int(code is not None))


def check_launch() -> None:
    if "MASTER_ADDR" not in os.environ or "LOCAL_RANK" not in os.environ:
        raise UserError(
            "WORLD_SIZE asks for several processes, but their addresses are missing; start them "
            "with torchrun, or unset WORLD_SIZE"
        )
    here, gpus = int(os.environ.get("LOCAL_WORLD_SIZE", "1")), torch.cuda.device_count()
    if 0 < gpus < here:
        raise UserError(
            f"{here} processes were started on a machine with {gpus} GPU: use torchrun "
            f"--nproc-per-node {gpus}, or no torchrun for a single one"
        )


def follow_first_process() -> None:
    """Take part in all that the first process trains, until it ends."""
    # Ctrl-C reaches every process: the first one decides, saves, and ends the others.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    run: Assembly | None = None
    while (message := distributed.broadcast()) != END:
        if isinstance(message, Announcement):
            run = join_training(message)
        else:
            assert run is not None
            {"step": run.trainer.take_step, "read": run.state.totals.read}[message]()


def join_training(announced: Announcement) -> Assembly:
    """The same state as in the first process."""
    run = Assembly(announced.config, announced.dataset, started="")
    run.state.load_state_dict(announced.tensors, step=announced.step, metrics=announced.metrics)
    run.state.totals.sums.zero_()  # the first process has counted these already
    run.state.train()
    return run
