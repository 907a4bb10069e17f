"""Importing this imports all that training needs, once, for processes that are forked from it."""

import tempfile
from pathlib import Path

import torch

import fullmatch.cli
import fullmatch.comparison
import fullmatch.display  # noqa: F401
from fullmatch.experiment import start
from fullmatch.runfolder import RunFolder
from fullmatch.settings import resolve

torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as place:
    state = start(resolve(), RunFolder(Path(place))).state
    # No backward pass: it may start threads, and a process with threads must not be forked.
    for parameter in state.student.parameters():
        parameter.grad = torch.zeros_like(parameter)
    state.optimizer.step()
