"""Views of a struct: another struct with some of its fields, and the way back. Pure.

What a field is called, how long it may be and what it means is said once, in the struct that the
bus speaks; what HTTP, MCP and a model may give of it is picked from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

_SAME: Final = object()


class Pick(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a view."""

    field: str = ""
    """Of the struct; empty: it has the same name."""
    kind: Any = None
    """Its type here, if that is narrower or wider; None: the field's."""
    default: Any = _SAME
    """Here; absent: the field's, or none if it has none."""
    is_one: bool = False
    """One of what the field holds several of."""


Picks = Mapping[str, Pick]


def picked(*names: str, **others: Pick) -> dict[str, Pick]:
    """Return picks of fields as they are, and of `others`.

    >>> sorted(picked("content", text=Pick(field="content")))
    ['content', 'text']
    """
    return {name: Pick() for name in names} | others


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A struct made of another."""

    kind: type[Any]
    picks: Picks

    def fields(self, given: msgspec.Struct) -> dict[str, Any]:
        """Return what `given` sets of the fields of the struct that this is a view of."""
        found: dict[str, Any] = {}
        for name, pick in self.picks.items():
            value = getattr(given, name)
            if value is not None:
                found[pick.field or name] = (value,) if pick.is_one else value
        return found

    def given(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return by the names of this view what `fields` sets: the way back."""
        return {
            name: fields[field][0] if pick.is_one else fields[field]
            for name, pick in self.picks.items()
            if (field := pick.field or name) in fields
        }


def view(
    name: str,
    source: type[msgspec.Struct],
    picks: Picks,
    *,
    base: type[msgspec.Struct],
    text: str,
    is_described: bool = True,
) -> View:
    """Make a view of `source`.

    Args:
        base: what it inherits: its names for the outside, and whether it takes unknown fields.
        text: its docstring.
        is_described: False: without what the fields say of themselves.

    >>> class Whole(msgspec.Struct, kw_only=True):
    ...     content: str
    ...     by: str
    ...     limit: int = 3
    >>> class Base(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    ...     pass
    >>> part = view("Part", Whole, picked("limit", text=Pick(field="content")), base=Base, text="")
    >>> part.fields(part.kind(text="x"))
    {'limit': 3, 'content': 'x'}
    >>> part.given({"content": "x"})
    {'text': 'x'}
    """
    infos = {info.name: info for info in msgspec.structs.fields(source)}
    fields = [
        _field(name_, infos[pick.field or name_], pick, is_described)
        for name_, pick in picks.items()
    ]
    kind = msgspec.defstruct(
        name,
        fields,
        bases=(base,),
        namespace={"__doc__": text},
        module=source.__module__,
        frozen=True,
        kw_only=True,
    )
    return View(kind=kind, picks=picks)


def _field(name: str, info: FieldInfo, pick: Pick, is_described: bool) -> tuple[str, Any, Any]:
    kind = _with_description(pick.kind, info.type) if pick.kind is not None else info.type
    default = info.default if pick.default is _SAME else pick.default
    return name, kind if is_described else bare(kind), msgspec.field(default=default)


def _with_description(kind: Any, source: Any) -> Any:
    """Let a type of its own say what the field says, unless it says something itself."""
    said = [one for one in _metas(source) if one.description]
    if not said or any(one.description for one in _metas(kind)):
        return kind
    return Annotated[kind, msgspec.Meta(description=said[-1].description)]


def bare(kind: Any) -> Any:
    """Return a type without its description.

    >>> bare(Annotated[str, msgspec.Meta(max_length=3), msgspec.Meta(description="a name")])
    typing.Annotated[str, msgspec.Meta(max_length=3)]
    """
    kept = [one for one in _metas(kind) if not one.description]
    if get_origin(kind) is not Annotated:
        return kind
    plain = get_args(kind)[0]
    for one in kept:
        plain = Annotated[plain, one]
    return plain


def _metas(kind: Any) -> list[msgspec.Meta]:
    return [one for one in get_args(kind)[1:] if isinstance(one, msgspec.Meta)]
