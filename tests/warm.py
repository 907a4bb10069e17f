"""Importing this imports all that training needs, once, for processes that are forked from it."""

import tempfile
from pathlib import Path

import torch

from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import start
from fullmatch.storage.run_folder import RunFolder

torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as place:
    state = start(resolve(), RunFolder(Path(place))).state
    # No backward pass: it may start threads, and a process with threads must not be forked.
    for parameter in state.student.parameters():
        parameter.grad = torch.zeros_like(parameter)
    state.optimizer.step()
