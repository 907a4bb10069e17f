"""A command that several processes run together, started by torchrun."""

import os
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from datetime import timedelta
from io import StringIO
from typing import NoReturn

import torch.distributed as dist
from torch._C._distributed_c10d import Store

from fullmatch import distributed
from fullmatch.display.terminal import console

FAILED = "failed"  # in the store, once the first process has said why
PATIENCE = timedelta(seconds=3)  # with which the others wait whether the first says what is wrong


def run_together(run: Callable[[], None]) -> NoReturn:
    """Call `run` in every process, and exit; the first prints, the others only what ends them."""
    with distributed.process_group() as store:
        console.quiet = not distributed.is_first()
        errors = StringIO()
        try:
            if distributed.is_first():
                code = exit_code(run)
                if code:
                    store.set(FAILED, "")
            else:
                with redirect_stdout(StringIO()), redirect_stderr(errors):
                    code = exit_code(run)
        finally:
            sys.stdout.flush()
        if errors.getvalue() and code and not first_has_failed(store):
            sys.stderr.write(f"process {distributed.rank()}: {errors.getvalue().lstrip()}")
        sys.stderr.flush()
        # Without cleanup, which would wait for processes that may be gone.
        os._exit(code)


def exit_code(run: Callable[[], None]) -> int:
    try:
        run()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except (dist.DistError, RuntimeError) as error:
        if not is_lost_connection(error):
            traceback.print_exc()
            return 1
        first = str(error).strip().partition("\n")[0]
        reason = re.sub(r"^\[\S+\] ", "", first)[:120]  # without the place in torch's source
        print(f"fullmatch: another process was lost ({reason})", file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def is_lost_connection(error: Exception) -> bool:
    return isinstance(error, dist.DistError) or "gloo" in str(error)


def first_has_failed(store: Store) -> bool:
    """Whether the first process has ended with an error too, and so has printed one."""
    try:
        store.wait([FAILED], PATIENCE)
    except RuntimeError:  # not within that time, or its connection is gone
        return False
    return True
