"""What a kind of the board is on the command line: a group of commands, as data. Pure.

`vigil.cli.board.kinds` makes commands of it. What an argument or option may be is said by the field
of the body that it fills.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from ..texts.columns import Column

Shown = Mapping[str, Any]
"""An answer of HTTP, as JSON has it."""
SHORT_ID: Final = Column("ID", lambda one: one["id"][:8])
"""As much of an id as commands take for the whole."""
WHOSE: Final = (Column("id", "id"), Column("owner", "owner"), Column("agent", "agent_id"))
MOVED: Final = (
    Column("made", "created_at", is_instant=True),
    Column("moved", "moved_at", is_instant=True),
    Column("revision", "revision"),
)


class Given(msgspec.Struct, frozen=True):
    """An argument or an option of a command: it fills a field of the body."""

    field: str
    help: str
    option: str = ""
    """Its flag; empty: it's an argument."""
    default: Any = None
    """Of an argument that may be left out. None: it may not."""
    metavar: str | None = None
    kind: Any = None
    """What is typed, if that isn't what the field holds; None: as the field. Instants are texts."""
    read: Callable[[Any], Any] | None = None
    """Makes the field's value of what is typed."""
    is_goal: bool = False
    """It names a goal, by the beginning of its id."""


class Command(msgspec.Struct, frozen=True):
    """A command that makes one, or does something to it."""

    name: str
    text: str
    does: Literal["make", "change", "split", "end"]
    gives: tuple[Given, ...] = ()
    always: Mapping[str, Any] = {}
    """What else the body has."""
    only: str = ""
    """The status that it must have; empty: any."""
    has_why: bool = True
    """Whether a reason may be given, for its history. Of an end none is."""
    told: Callable[[Shown], str] | None = None
    """What a person is told of what came of it; None: its id, for scripts."""


class CommandGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The group of a kind's commands."""

    help: str
    list_text: str
    empty_unchosen: str = ""
    """Said where there is none and nothing was chosen; empty: as where something was."""
    chosen: tuple[Any, ...] = (None,)
    """What lists are asked for to find one by the beginning of its id; None: all that they show."""
    columns: tuple[Column, ...]
    """Of a list."""
    show_text: str
    fields: tuple[Column, ...]
    """Of one that is shown."""
    texts_before: tuple[str, ...] = ()
    """Fields that stand whole before these."""
    texts: tuple[str, ...] = ()
    """Fields that stand whole behind these."""
    parts: Mapping[str, tuple[Column, ...]] = {}
    """Tables behind that: the field that holds its lines, and what is shown of one."""
    words: str
    """The field that tells a person which it is."""
    is_named: bool = False
    """Whether that is a name, which may be given in the place of an id."""
    commands: tuple[Command, ...]
