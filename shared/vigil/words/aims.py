"""What the arguments of a tool are for. Pure.

An argument says *who* a call reaches or where it goes; what is *run*; *which* thing, amount or day
it is about; it is *content*, or a *detail* that steers nothing (how many rows, how long to wait).
One that nobody declared counts as who.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from ..contracts.tools import Aim

PARTS_MAX: Final = 500
"""Values of one call that are looked at; one with more can't be told to be the person's own."""

_WHO: Final = re.compile(
    r"to|cc|bcc|recipients?|attendees?|participants?|invitees?|guests?|users?|members?|channels?"
    r"|address(es)?|emails?|phones?|iban|account|payee|url|uri|href|link|host|domain|endpoint"
    r"|webhook|path|paths|file|folder|directory|repo|repository"
    r"|owner|assignees?|share_with|destination|source|target"
)
_RUN: Final = re.compile(r"commands?|cmd|script|code|sql|query|expression")
_WHICH: Final = re.compile(
    r"id|ids|.*_id|.*_ids|name|number|amount|price|total|currency|quantity|date|day|status|state"
    r"|label|labels|tag|tags|version|branch|key|role|permission|visibility"
)
_CONTENT: Final = re.compile(
    r"body|text|message|content|subject|title|description|note|notes|summary|comment|html|markdown"
    r"|caption|reason"
)
_DETAIL: Final = re.compile(
    r"limit|offset|page|page_size|per_page|count|max_.*|min_.*|timeout(_.*)?|sort|order|cursor"
    r"|format|locale|language|time_?zone|tz|start(_.*)?|end(_.*)?|from_date|to_date|since|until"
    r"|duration(_.*)?|minutes|hours|.*_at|.*_time"
)


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One value in the arguments of a call."""

    path: str
    """Names of the fields that lead to it, with dots; places in a list aren't counted."""
    aim: Aim
    value: str | float
    is_default: bool = False
    """Whether it is what the schema has where nothing is given."""


def parts(
    given: Mapping[str, Any], aims: Mapping[str, Aim], schema: Mapping[str, Any]
) -> list[Argument]:
    """Return the values of a call: all texts and numbers, also of lists and of fields in fields.

    What says nothing (None, an empty text) is left out. The name of a field that no schema has was
    chosen by the model, and counts as a value.

    Args:
        aims: path -> aim; a path stands for all that is below it.
        schema: of the arguments.

    >>> [(one.path, one.aim, one.value) for one in parts({"to": ["a@b.org"], "text": "Hi"},
    ...     {"to": "who", "text": "content"}, {"properties": {"to": {}, "text": {}}})]
    [('to', 'who', 'a@b.org'), ('text', 'content', 'Hi')]
    """
    found: list[Argument] = []
    for path, value, is_default in _leaves("", given, schema):
        aim = _aim_of(path, aims)
        found.append(Argument(path=path, aim=aim, value=value, is_default=is_default))
        if len(found) > PARTS_MAX:
            break
    return found


_Leaf = tuple[str, "str | float", bool]


def _leaves(path: str, value: Any, schema: Any) -> Iterator[_Leaf]:
    declared = schema if isinstance(schema, Mapping) else {}
    is_default = "default" in declared and declared["default"] == value
    if isinstance(value, str | int | float):
        if value != "":
            yield path, value, is_default
    elif isinstance(value, Mapping):
        known = declared.get("properties") or {}
        for name, below in value.items():
            inner = f"{path}.{name}" if path else name
            if name not in known:
                yield inner, name, False
            yield from _leaves(inner, below, known.get(name))
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _leaves(path, below, declared.get("items"))


def _aim_of(path: str, aims: Mapping[str, Aim]) -> Aim:
    while path:
        if path in aims:
            return aims[path]
        path = path.rpartition(".")[0]
    return aims.get("*", "who")


def proposed(schema: Mapping[str, Any]) -> dict[str, Aim]:
    """Return what the arguments of a tool seem to be for, by their names and types: a proposal for
    a person, who decides.

    >>> proposed({"properties": {"to": {}, "body": {}, "limit": {"type": "integer"}, "blob": {}}})
    {'to': 'who', 'body': 'content', 'limit': 'detail', 'blob': 'who'}
    """
    known = schema.get("properties") or {}
    return {name: _proposed(name.casefold(), known[name]) for name in known}


def _proposed(name: str, declared: Any) -> Aim:
    is_instant = isinstance(declared, dict) and declared.get("format") in (
        "date",
        "date-time",
        "time",
        "duration",
    )
    if is_instant or _DETAIL.fullmatch(name):
        return "detail"
    if _CONTENT.fullmatch(name):
        return "content"
    if _RUN.fullmatch(name):
        return "run"
    if _WHO.fullmatch(name):
        return "who"
    return "which" if _WHICH.fullmatch(name) else "who"


_ADDRESS: Final = re.compile(r"(.*_)?(url|urls|uri|href|link|endpoint|webhook)")


def opens_address(schema: Mapping[str, Any]) -> bool:
    """Whether a tool seems to open an address that is given to it: then what it looks at tells
    somebody something, whatever class it's of.

    >>> opens_address({"properties": {"url": {"type": "string"}}})
    True
    """
    known = schema.get("properties") or {}
    return any(
        _ADDRESS.fullmatch(name.casefold())
        or (isinstance(declared, dict) and declared.get("format") in ("uri", "iri", "url"))
        for name, declared in known.items()
    )
