"""One picture after another: labeled or skipped, and any of it undone."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from fullmatch.errors import UserError
from fullmatch.inference.suggestion import Suggestion
from fullmatch.labeling.labels import Labels, class_name


class Stale(Exception):
    """The asked-for picture is no longer the current one, as when a key is pressed twice."""


@dataclass
class Queue:
    """The pictures to label, in order; safe to use from several threads."""

    labels: Labels
    pictures: Sequence[Suggestion]
    given: list[str] = field(default_factory=list)  # a label, or '' for skipped, of those before
    lock: Lock = field(default_factory=Lock)

    def state(self) -> dict[str, Any]:
        """All that the page shows."""
        at = len(self.given)
        found = self.pictures[at] if at < len(self.pictures) else None
        return {
            "number": at,
            "total": len(self.pictures),
            "classes": self.labels.classes,
            "name": os.path.basename(found.name) if found else None,
            "reason": found.reason if found else None,
            "guess": found.guess if found else None,
            "last": self.given[-1] if self.given else None,
            "labeled": self.labeled(),
        }

    def labeled(self) -> int:
        """How many labels were given here."""
        return sum(map(bool, self.given))

    def label(self, number: int, name: str) -> None:
        with self.lock:
            path = self.current(number)
            if name not in self.labels.classes:
                raise UserError(f"no class {name!r}; add it first")
            self.labels.put(path, name)
            self.given.append(name)

    def skip(self, number: int) -> None:
        with self.lock:
            self.current(number)
            self.given.append("")

    def undo(self, number: int) -> None:
        """Back to the picture before, which is unlabeled again."""
        with self.lock:
            if number != len(self.given):
                raise Stale
            if not self.given:
                raise UserError("nothing to undo: this is the first picture")
            if self.given[-1]:
                self.labels.put(self.pictures[number - 1].name, "")
            self.given.pop()

    def add_class(self, typed: str) -> None:
        with self.lock:
            name = class_name(typed)
            if name in self.labels.classes:
                raise UserError(f"the class {name!r} is there already")
            self.labels.classes.append(name)

    def current(self, number: int) -> str:
        if number != len(self.given) or number >= len(self.pictures):
            raise Stale
        return self.pictures[number].name
