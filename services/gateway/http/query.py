"""Reads a query string into a struct, as strictly as a body is read: unknown names are refused.

Pure. FastAPI drops parameters that it doesn't know, so a misspelt filter would silently widen an
answer; where that matters the query is read here.
"""

from __future__ import annotations

import functools
import math
import re
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast
from urllib.parse import parse_qsl, unquote

import msgspec
import msgspec.inspect

from vigil.errors import InvalidInput

from .decide import complaint

T = TypeVar("T")
PARAMETERS_MAX: Final = 50
_NUL: Final = b"%00"
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]", re.ASCII)


def query_of(query: bytes, kind: type[T], *, lists: frozenset[str] = frozenset()) -> T:
    """Decode `query` as a `kind`; parameters in `lists` may repeat, and be comma separated.

    Raises:
        InvalidInput: naming the parameter and the reason.

    >>> class Wanted(msgspec.Struct, forbid_unknown_fields=True):
    ...     limit: int = 10
    ...     type: tuple[str, ...] = ()
    >>> query_of(b"limit=5&type=a,b&type=c", Wanted, lists=frozenset({"type"}))
    Wanted(limit=5, type=('a', 'b', 'c'))
    """
    values: dict[str, Any] = {}
    for name, value in _pairs(query):
        if name in lists:
            values.setdefault(name, []).extend(part for part in value.split(",") if part)
        elif name in values:
            raise InvalidInput(name[:64], "is given more than once")
        else:
            values[name] = value
    for name in _instants(cast(Any, kind)):
        if name in values and not _DATE.match(values[name]):
            # The decoder would take a number as seconds since 1970: 2026 as half past midnight.
            raise InvalidInput(
                name, "must be an instant of RFC 3339 with its zone, as 2026-11-22T09:00:00Z"
            )
    try:
        wanted = msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        field, reason = complaint(str(error))
        raise InvalidInput(field.partition("[")[0], reason) from error
    check_values(wanted)
    return wanted


@functools.cache
def _instants(kind: type) -> tuple[str, ...]:
    """Return the parameters of a struct that are instants."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)  # noqa: S101 - queries are structs
    return tuple(field.encode_name for field in info.fields if _is_instant(field.type))


def _is_instant(kind: msgspec.inspect.Type) -> bool:
    if isinstance(kind, msgspec.inspect.Metadata):  # it has a description
        return _is_instant(kind.type)
    if isinstance(kind, msgspec.inspect.UnionType):
        return any(map(_is_instant, kind.types))
    return isinstance(kind, msgspec.inspect.DateTimeType)


def check_query(query: bytes) -> None:
    """Refuse NUL in a query, whoever reads it: no parameter takes it.

    Raises:
        InvalidInput: naming the parameter.

    >>> check_query(b"q=a&words=b%00c")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: words: must not contain NUL
    """
    for part in query.split(b"&") if _NUL in query else ():
        name = part.partition(b"=")[0]
        if _NUL in part:
            shown = "query" if _NUL in name else unquote(name.decode("latin-1"))[:64]
            raise InvalidInput(shown, "must not contain NUL")


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=PARAMETERS_MAX,
        )
    except UnicodeDecodeError as error:
        raise InvalidInput("query", "must be percent-encoded UTF-8") from error
    except ValueError as error:
        raise InvalidInput("query", f"must have at most {PARAMETERS_MAX} parameters") from error


def check_values(struct: Any) -> None:
    """Refuse what fits a type and can still not be used: NUL, not a number, a day before year 1.

    Raises:
        InvalidInput: naming the field, as the outside calls it.
    """
    for field in msgspec.structs.fields(struct):
        check_value(field.encode_name, getattr(struct, field.name))


def check_value(name: str, value: Any) -> None:
    """Refuse one value of such a kind. Raises: InvalidInput, naming it `name`."""
    if isinstance(value, str) and "\0" in value:
        raise InvalidInput(name, "must not contain NUL")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(name, "must be a number")
    if isinstance(value, datetime) and not _is_utc_instant(value):
        raise InvalidInput(name, "is out of range")


def _is_utc_instant(at: datetime) -> bool:
    try:
        at.astimezone(UTC)
    except OverflowError:
        return False
    return True
