"""`why`: the story of a message, a follow-up, an event, a turn, a dead letter or a signal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Final

import typer

from vigil.contracts.vocabulary import ENDINGS

from .. import options, output, wall
from ..tables import Result

WIDTH_MAX: Final = 100
"""Longer lines are hard to read, however wide the terminal is."""
WIDTH_MIN: Final = 40
OTHERS_MAX: Final = 5
"""Sessions that are named in which something else has the name that was asked for."""
_INDENT: Final = " " * 12
_COLOURS: Final = {"good": "32", "bad": "31", "open": "33"}


def why(
    id_: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Of a message, event, follow-up, turn, task, grant, memory ..., or its "
            "beginning; or seq-N.",
        ),
    ],
    session: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="The session, if several have that id, or it's old."),
    ] = None,
) -> Result:
    """Tell why something was said, or was not: every cause, from the log. 3 if it isn't known."""
    key = None if session is None else options.checked(session)
    answer = options.client().why(id_, session=key)
    return Result(answer, partial(_show, answer))


def _show(answer: Mapping[str, Any]) -> None:
    width = min(max(shutil.get_terminal_size().columns, WIDTH_MIN), WIDTH_MAX)
    for line in story(answer, width=width, is_fancy=output.is_fancy(sys.stdout)):
        output.data(line)


def story(answer: Mapping[str, Any], *, width: int, is_fancy: bool = False) -> Iterator[str]:
    """Yield the lines of a story, at most `width` columns each: what happened, then the verdict."""
    day = time = ""
    for step in answer["steps"]:
        at = wall.instant(step.get("at"))
        if at and at[:10] != day:
            if day:
                yield ""
            day, time = at[:10], ""
            yield _styled(f"{day} ({wall.zone_name()})", "1", is_fancy)
        is_new_time = bool(at) and at[11:19] != time
        time = at[11:19] if at else time
        begin = f"  {time:<8}  " if is_new_time else _INDENT
        first, *rest = _wrapped(wall.told(step["text"]), width - len(_INDENT))
        yield _styled(begin, "2", is_fancy) + first
        yield from (_INDENT + line for line in rest)
    if cut := answer.get("cut"):
        yield from _wrapped(f"({cut})", width)
    if others := answer.get("others"):
        keys = ", ".join(others[:OTHERS_MAX])
        more = f" and {len(others) - OTHERS_MAX} more" if len(others) > OTHERS_MAX else ""
        told = f"(the newest of {len(others) + 1} of that name; --session tells of another: "
        yield from _wrapped(f"{told}{keys}{more})", width)
    yield ""
    ending = ENDINGS.get(answer["verdict"], ENDINGS["unknown"])
    colour = _COLOURS[ending.mood]
    for line in _wrapped(wall.told(answer["summary"]), width):
        yield _styled(line, f"1;{colour}", is_fancy)


def _wrapped(text: object, width: int) -> list[str]:
    plain = " ".join(output.printable(text).split())
    return textwrap.wrap(plain, width, break_on_hyphens=False) or [""]


def _styled(text: str, code: str, is_fancy: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if is_fancy else text
