"""What a kind of the board is on the command line: a group of commands, as data. Pure.

`vigil.cli.board.kinds` makes commands of it. What an argument or option may be is said by the field
of the body that it fills.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from ..texts.columns import Column

Shown = Mapping[str, Any]
"""An answer of HTTP, as JSON has it."""
SHORT_ID: Final = Column("ID", lambda one: one["id"][:8])
"""As much of an id as commands take for the whole."""
AGENT: Final = "agent"
"""Each command that makes something has an option for this field, behind the others; a `Given` of
this name says where it stands instead."""
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
    """Where it's left out. None: an argument may not be, and an option fills nothing then."""
    metavar: str | None = None
    kind: Any = None
    """What is typed, if that isn't what the field holds; None: as the field. Instants are texts."""
    read: Callable[[Any], Any] | None = None
    """Makes the field's value of what is typed."""
    names: Literal["", "goals", "rows", "own row"] = ""
    """It names one of these, by the beginning of its id; of the timetable also by its name. Rows
    are all, those that the system keeps up among them, unless they have to be a person's own."""
    time: Literal["", "span", "until", "at"] = ""
    """It's so many seconds, or as `5m`; an instant to come, or how long it is until then, on the
    person's clocks; the same, but on clocks that the server knows."""
    least: int | None = None
    """Of a number."""


class Agreement(msgspec.Struct, frozen=True):
    """What a person has to agree to before something is made."""

    shown: Callable[[Shown], Iterable[str]]
    """Lines, of what would be sent."""
    question: str


class Command(msgspec.Struct, frozen=True):
    """A command that makes one, or does something to it."""

    name: str
    text: str
    does: Literal["make", "change", "split", "end"]
    gives: tuple[Given, ...] = ()
    always: Mapping[str, Any] = {}
    """What else the body has."""
    builds: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Makes the body of what was typed, where that isn't field by field. Raises: InvalidInput."""
    agreement: Agreement | None = None
    """None: nobody is asked."""
    only: str = ""
    """The status that it must have; empty: any."""
    has_why: bool = True
    """Whether a reason may be given, for its history. Of an end none is."""
    summary: Callable[[Shown], str] | None = None
    """Says to a person what came of it; of a split, of each part. None: the id does."""
    tells_id: bool = False
    """Whether a script that reads what is printed gets the id of what was made, too."""


class CommandGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The group of a kind's commands."""

    help: str
    list_text: str
    choice: Given | None = None
    """How what a list shows is chosen; None: by an option of that parameter's name."""
    limit_text: str = ""
    """What is said of the option for how many a list shows; empty: there is none."""
    lists_all: bool = False
    """Whether a list asks for as many as it gets at once."""
    id_help: str = ""
    """What is said of the argument that names one; empty: as of most kinds."""
    empty: str = ""
    """Said where there is none, with what was chosen for `{}`; empty: just that."""
    empty_unchosen: str = ""
    """The same where nothing was chosen; empty: as where something was."""
    chosen: tuple[Any, ...] = (None,)
    """What lists are asked for to find one by the beginning of its id; None: all that they show.
    Names are looked up in one after the other; of several in a later one the newest is meant."""
    columns: tuple[Column, ...]
    """Of a list."""
    show_text: str
    fields: tuple[Column, ...]
    """Of one that is shown."""
    texts_before: tuple[str, ...] = ()
    """Fields that stand whole before these."""
    first_parts: Mapping[str, tuple[Column, ...]] = {}
    """As `parts`, but directly behind these, and only where there are any."""
    texts: tuple[str, ...] = ()
    """Fields that stand whole behind these."""
    documents: Mapping[str, str] = {}
    """Fields that stand whole behind these, empty ones, too, by what they are called; what there is
    none of is left out."""
    parts: Mapping[str, tuple[Column, ...]] = {}
    """Tables behind that: the field that holds its lines, and what is shown of one."""
    words: str = ""
    """The field that tells a person which it is; empty: its id alone does."""
    is_named: bool = False
    """Whether that is a name, which may be given in the place of an id."""
    called: Callable[[Shown], str] | None = None
    """What a person calls one besides, which follows from its id, and may be given in its place."""
    offered: str = ""
    """The field that a shell shows beside names; empty: it offers ids, beside `words`."""
    commands: tuple[Command, ...] = ()
    """But for those that are written by hand."""
