"""Orders to the conversation itself, which begin with a slash: what they are called and mean. Pure.

`vigil chat` and the console read them here, so both know the same ones, and neither sends one that
it doesn't know to a model. Programs and pipes don't: what they send may be by anybody, and is said
as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from .nearest import nearest

_FORM: Final = re.compile(r"/([A-Za-z][\w-]{0,30})(?:\s+|$)(.*)", re.DOTALL)
_HANDLE: Final = re.compile(r"[a-z]\d{1,9}", re.IGNORECASE)


class SlashCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    name: str
    takes: str = ""
    """What follows its name, as it is shown."""
    meaning: str
    has_text: bool = False
    """Whether what follows may have lines: otherwise such a text is no order, but was pasted."""
    is_at_terminal: bool = True
    is_in_console: bool = True

    @property
    def usage(self) -> str:
        """How it's written, and what it does."""
        return f"/{self.name}{' ' * bool(self.takes)}{self.takes}: {self.meaning}"


COMMANDS: Final = {
    one.name: one
    for one in (
        SlashCommand(name="new", meaning="begin a conversation of its own"),
        SlashCommand(name="stop", meaning="stop what the agent is doing here"),
        SlashCommand(
            name="why",
            takes="[2 | ID]",
            meaning="why the agent said what it did last; 2: the one before; or anything by its id",
        ),
        SlashCommand(
            name="remind",
            takes="[WHEN TEXT]",
            meaning="have it remind you, as in /remind in an hour to call; alone: what is to come",
            has_text=True,
        ),
        SlashCommand(name="tasks", meaning="what it is to do some day"),
        SlashCommand(
            name="edit", takes="TEXT", meaning="what you said last, said otherwise", has_text=True
        ),
        SlashCommand(name="retry", meaning="what you said last is answered anew"),
        SlashCommand(
            name="reply",
            takes="[2] TEXT",
            meaning="to what the agent said last; 2: to the one before",
            has_text=True,
        ),
        SlashCommand(
            name="attach",
            takes="PATH",
            meaning="an image, a PDF file or a text, for what you say next",
            is_in_console=False,
        ),
        SlashCommand(name="letters", meaning="what came from outside, by name"),
        SlashCommand(
            name="open", takes="a12 TEXT", meaning="open it for the answer to TEXT", has_text=True
        ),
        SlashCommand(
            name="fine",
            takes="a12",
            meaning="read it, and have its text count as yours from now on, word for word",
        ),
        SlashCommand(name="trust", takes="a12", meaning="trust where it came from, from now on"),
        SlashCommand(
            name="delete",
            takes="yes",
            meaning="delete this conversation, for good; what was learnt in it is kept",
        ),
        SlashCommand(name="quit", meaning="leave, as Ctrl-D does", is_in_console=False),
        SlashCommand(name="help", meaning="these"),
    )
}
_ALIASES: Final = {"exit": "quit", "bye": "quit", "q": "quit", "h": "help"}
"""What other chat programs call them."""


class PlainWords(msgspec.Struct, frozen=True):
    """What is said to the agent."""

    text: str


class SlashOrder(msgspec.Struct, frozen=True):
    """One of the commands, with what follows its name."""

    command: SlashCommand
    rest: str


class UnknownSlash(msgspec.Struct, frozen=True):
    """Nothing that is known, and what to tell whoever wrote it."""

    told: str


def read(line: str, *, is_terminal: bool) -> PlainWords | SlashOrder | UnknownSlash:
    r"""Read what somebody wrote.

    A path is no order, nor is a text of several lines unless the command takes one; two slashes
    say a line that begins with one.

    >>> [read(one, is_terminal=True).command.name for one in ("/stop", "/exit")]
    ['stop', 'quit']
    >>> read("/etc/hosts is gone", is_terminal=True).text
    '/etc/hosts is gone'
    >>> read("/attach a.png\nhm", is_terminal=True).text, read("//stop", is_terminal=True).text
    ('/attach a.png\nhm', '/stop')
    >>> read("/remnd me", is_terminal=True).told[:44]
    'There is no /remnd. Did you mean /remind? It'
    """
    text = line.strip()
    if text.startswith("//"):
        return PlainWords(text[1:])
    found = _FORM.fullmatch(text)
    if found is None:
        return PlainWords(text)
    name, rest = found[1], found[2].strip()
    command = COMMANDS.get(_ALIASES.get(name.lower(), name.lower()))
    if "\n" in text and not (command and command.has_text):
        return PlainWords(text)
    if command is None:
        return UnknownSlash(f"There is no /{name}. {_meant(name)} It wasn't sent: {_ESCAPE}.")
    if not (command.is_at_terminal if is_terminal else command.is_in_console):
        return UnknownSlash(f"/{name} works in `vigil chat` only. It wasn't sent: {_ESCAPE}.")
    return SlashOrder(command, rest)


def said_as_words(line: str) -> str:
    """Return what to tell whoever wrote an order where none is obeyed; empty: it is none.

    >>> said_as_words("/stop"), said_as_words("/etc/hosts")
    ('/stop was said to the agent: only at a terminal it is an order', '')
    """
    if not isinstance(read(line, is_terminal=True), SlashOrder):
        return ""
    return f"{line.split(maxsplit=1)[0]} was said to the agent: only at a terminal it is an order"


_ESCAPE: Final = "// at its beginning says it as it is"


def _meant(name: str) -> str:
    near = nearest(name.lower(), COMMANDS)
    return f"Did you mean /{near}?" if near else "/help shows what there is."


def usages(*, is_terminal: bool) -> Iterator[str]:
    """Yield a line for each command that works there."""
    for one in COMMANDS.values():
        if one.is_at_terminal if is_terminal else one.is_in_console:
            yield one.usage


def handle_of(text: str) -> str:
    """Return the name of a letter that a text begins with, empty: it begins with none.

    >>> handle_of("A12 what is it?"), handle_of("and this?"), handle_of("")
    ('a12', '', '')
    """
    first = text.partition(" ")[0]
    return first.lower() if _HANDLE.fullmatch(first) else ""


def reply_of(rest: str) -> tuple[int, str]:
    """Return how far back what is replied to was said, 1: last, and the reply, which may be empty.

    >>> reply_of("make it shorter"), reply_of("2 and this one?"), reply_of("2"), reply_of("")
    ((1, 'make it shorter'), (2, 'and this one?'), (1, '2'), (1, ''))
    """
    found = re.fullmatch(r"(\d{1,4})\s+(\S.*)", rest, re.DOTALL)
    return (int(found[1]), found[2]) if found else (1, rest)


def asked_of(rest: str) -> tuple[int, str]:
    """Return how far back what is asked about was said, 1: last; or the id that is asked about.

    >>> asked_of(""), asked_of("2"), asked_of("followup-1")
    ((1, ''), (2, ''), (1, 'followup-1'))
    """
    if not rest:
        return 1, ""
    return (int(rest), "") if re.fullmatch(r"[0-9]{1,4}", rest) else (1, rest)


def reminder_of(rest: str) -> str:
    """Return the words of a person who wants to be reminded.

    >>> reminder_of("in 20 minutes to stretch"), reminder_of("me at 8 to call")
    ('Remind me in 20 minutes to stretch', 'Remind me at 8 to call')
    """
    return f"Remind me {rest.removeprefix('me ')}"
