"""What a grant wants of a call, in words that need no knowledge of its form. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any, Final, assert_never

import msgspec

from vigil.contracts.board.grant import (
    Address,
    AnyConstraint,
    Argv,
    Empty,
    Equal,
    Exact,
    Folder,
    More,
)

_MORE: Final[dict[More, str]] = {
    "nothing": "and nothing after it",
    "operands": "and what follows it, but no options",
    "anything": "and whatever follows it",
}
_PORTS: Final = {"https": 443, "http": 80}


class CallCondition(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that has to hold."""

    before: str
    exact: str = ""
    """What is meant exactly, as it would be written."""
    after: str = ""


def conditions_of(given: Iterable[Any]) -> list[CallCondition]:
    """Return what has to hold of a call, all of it; nothing: it may be called with anything.

    >>> (one,) = conditions_of([{"kind": "argv", "argv": ["df", "-h", "a b"]}])
    >>> one.before, one.exact, one.after
    ('the command is', "df -h 'a b'", 'and nothing after it')
    >>> [one.exact for one in conditions_of([{"kind": "url", "host": "a.example", "port": 443}])]
    ['https://a.example/']
    """
    plain = msgspec.to_builtins(list(given))
    read = msgspec.convert(plain, list[AnyConstraint])
    return [_condition(one) for one in read]


def _condition(one: AnyConstraint) -> CallCondition:
    match one:
        case Argv():
            return CallCondition(
                before="the command is", exact=shlex.join(one.argv), after=_MORE[one.more]
            )
        case Address():
            port = "" if one.port == _PORTS[one.scheme] else f":{one.port}"
            address = f"{one.scheme}://{one.host}{port}{one.path}"
            return CallCondition(before=f"{one.field} is", exact=address, after="or below it")
        case Folder():
            return CallCondition(before=f"{one.field} is in", exact=one.folder, after="or below it")
        case Equal():
            return CallCondition(before=f"{one.field} is exactly", exact=_written(one.value))
        case Empty():
            return CallCondition(before=f"{one.field} is not given, or empty")
        case Exact():
            return CallCondition(before="its arguments are exactly", exact=_written(one.input))
        case _:
            assert_never(one)


def _written(value: Any) -> str:
    return msgspec.json.encode(value).decode()
