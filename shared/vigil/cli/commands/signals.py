"""`tail signals`: what happens, as a table that moves, as lines, or as JSON lines."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from vigil.errors import VigilError

from .. import options, output, wall

ROWS_MIN: Final = 5
FRAME_ROWS: Final = 4
"""Of the table's own: head, rule and the last line."""


def tail_signals(
    agent: Annotated[str | None, typer.Option("--agent", help="Of this agent only.")] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="Of this kind only: message.sent, or message.* for all."),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="KEY", help="Of this session only.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Whose; with an admin token. Default: all.")
    ] = None,
    after: Annotated[
        int | None,
        typer.Option("--after", min=0, help="Begin after this one; 0: with the oldest kept."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Go on as signals come.")
    ] = True,
    json: options.Json = False,
) -> None:
    """Print what happens, from now on or after a signal; --no-follow: what is kept."""
    away = _Away()
    signals = options.client().signals(
        agent=agent,
        kind=kind,
        session=None if session is None else options.checked(session),
        user=user,
        after=after,
        follow=follow,
        on_away=away,
    )
    if json:
        for signal in away.noticed(signals):
            output.json(signal)
    elif follow and output.is_fancy(sys.stdout):
        _draw(signals, away)
    else:
        for signal in away.noticed(signals):
            output.data(line_of(signal))


class _Away:
    """Remembers that the gateway is away, and says so once."""

    def __init__(self) -> None:
        self.reason = ""
        self.is_drawn = False

    def __call__(self, error: VigilError) -> None:
        if not self.reason and not self.is_drawn:
            output.message(f"{output.printable(error)}; trying again")
        self.reason = str(error)

    def noticed(self, signals: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for signal in signals:
            self.reason = ""
            yield signal


def cells_of(signal: dict[str, Any]) -> tuple[str, str, str, str, str]:
    """Return when, which kind, where, what, and what `vigil why` takes.

    >>> cells_of({"at": "2026-01-05T09:00:00.5Z", "kind": "timer.fired", "text": "It came due",
    ...           "session_key": "ann:vigil:t1", "subject": "tea"})
    ('2026-01-05 09:00:00', 'timer.fired', 'ann:vigil:t1', 'It came due', 'tea')
    """
    cells = (
        wall.instant(signal["at"]),
        signal["kind"],
        signal.get("session_key") or f"{signal['owner']}:{signal['agent']}",
        signal.get("text", ""),
        signal.get("subject") or "",
    )
    at, kind, where, text, subject = (" ".join(output.printable(cell).split()) for cell in cells)
    return at, kind, where, text, subject


def line_of(signal: dict[str, Any]) -> str:
    """Return a signal as one line."""
    at, kind, where, text, subject = cells_of(signal)
    about = f"  [{subject}]" if subject else ""
    return f"{signal['cursor']:>8}  {at}  {kind:<17}  {where}  {text}{about}"


def _draw(signals: Iterator[dict[str, Any]], away: _Away) -> None:
    """Show the newest signals as a table that fits the terminal."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    rows: deque[tuple[str, ...]] = deque()
    away.is_drawn = True

    def table() -> Any:
        while len(rows) > max(console.height - FRAME_ROWS, ROWS_MIN):
            rows.popleft()
        return _table(tuple(rows), away.reason)

    with Live(console=console, get_renderable=table, refresh_per_second=8):
        for signal in away.noticed(signals):
            rows.append(cells_of(signal))


def _table(rows: tuple[tuple[str, ...], ...], reason: str) -> Any:
    from rich.table import Table
    from rich.text import Text

    state = f"{reason}; trying again" if reason else "Ctrl-C ends it"
    table = Table(
        box=None,
        pad_edge=False,
        header_style="bold",
        expand=True,
        caption=Text(output.printable(state)),
        caption_justify="left",
    )
    at = f"AT ({wall.zone_name()})"
    for name, ratio in ((at, 0), ("KIND", 0), ("SESSION", 2), ("WHAT", 4), ("ABOUT", 2)):
        width = {at: max(19, len(at)), "KIND": 17}.get(name)
        table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=ratio or None, width=width)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
