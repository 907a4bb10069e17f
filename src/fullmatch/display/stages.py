"""Progress of passes over all pictures: a moving bar per stage, or a few lines."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fullmatch.display import terminal

LINE_EVERY = 500  # pictures between two lines, or a tenth of all if that is more

ShowProgress = Callable[[int, int], None]  # pictures done, and in all


class Stages:
    """Stages of one command, each of which knows its total when it begins."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar

    def begin(self, name: str) -> ShowProgress:
        """A stage that is shown with its first picture."""
        task = self.bar.add_task(name, total=None, visible=False)
        printed = 0

        def show(done: int, total: int) -> None:
            nonlocal printed
            self.bar.update(task, completed=done, total=total, visible=True)
            if self.bar.disable and done >= printed + max(LINE_EVERY, total // 10):
                terminal.print_line(f"{name} {done:,}/{total:,}")
                printed = done

        return show

    def begin_quietly(self, name: str) -> Callable[[int], None]:
        """A stage that counts by itself, and prints no lines."""
        task = self.bar.add_task(name, total=None, visible=False)

        def advance(total: int) -> None:
            self.bar.update(task, total=total, advance=1, visible=True)

        return advance


@contextmanager
def show_stages() -> Iterator[Stages]:
    """Bars that disappear at the end."""
    bar = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=terminal.console,
        disable=not terminal.can_draw_bars(),
        transient=True,
    )
    with bar:
        yield Stages(bar)
