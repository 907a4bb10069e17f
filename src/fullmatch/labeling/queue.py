"""Pictures shown one after another: labeled, skipped, or undone."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from fullmatch.errors import UserError
from fullmatch.inference.suggestion import Suggestion
from fullmatch.labeling.label_table import LabelTable, parse_class_name


class OutdatedRequest(Exception):
    """The request is not about the current picture, as when a key is pressed twice."""


@dataclass(frozen=True)
class QueueState:
    """Everything that the page shows."""

    number: int  # of the current picture, from 0; `total` when done
    total: int
    classes: list[str]
    name: str | None  # of the current picture
    reason: str | None
    guess: str | None
    last: str | None  # the previous answer; '' for skipped
    labeled: int


@dataclass
class LabelQueue:
    """The pictures to label, in order; can be used from several threads."""

    table: LabelTable
    pictures: Sequence[Suggestion]
    answers: list[str] = field(default_factory=list)  # a label or '' (skipped) per picture so far
    lock: Lock = field(default_factory=Lock)

    def state(self) -> QueueState:
        number = len(self.answers)
        current = self.pictures[number] if number < len(self.pictures) else None
        return QueueState(
            number=number,
            total=len(self.pictures),
            classes=self.table.classes,
            name=os.path.basename(current.name) if current else None,
            reason=current.reason if current else None,
            guess=current.guess if current else None,
            last=self.answers[-1] if self.answers else None,
            labeled=self.count_labeled(),
        )

    def count_labeled(self) -> int:
        return sum(map(bool, self.answers))

    def label(self, number: int, label: str) -> None:
        with self.lock:
            path = self.current_path(number)
            if label not in self.table.classes:
                raise UserError(f"no class {label!r}; add it first")
            self.table.set_label(path, label)
            self.answers.append(label)

    def skip(self, number: int) -> None:
        with self.lock:
            self.current_path(number)
            self.answers.append("")

    def undo(self, number: int) -> None:
        """Go back to the previous picture and remove its label."""
        with self.lock:
            if number != len(self.answers):
                raise OutdatedRequest
            if not self.answers:
                raise UserError("nothing to undo: this is the first picture")
            if self.answers[-1]:
                self.table.set_label(self.pictures[number - 1].name, "")
            self.answers.pop()

    def add_class(self, typed: str) -> None:
        with self.lock:
            name = parse_class_name(typed)
            if name in self.table.classes:
                raise UserError(f"the class {name!r} exists already")
            self.table.classes.append(name)

    def current_path(self, number: int) -> str:
        if number != len(self.answers) or number >= len(self.pictures):
            raise OutdatedRequest
        return self.pictures[number].name
