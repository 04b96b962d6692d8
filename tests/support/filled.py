"""Records filled by their contracts: each text in them is a canary that names its field.

A field that somebody adds tomorrow is filled by itself, so a test that looks for canaries has it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from vigil import contracts
from vigil.contracts.base import Record

AT: Final = dt.datetime(2026, 11, 20, 8, 30, tzinfo=dt.UTC)
MARKS: Final = ("is_tainted", "is_trusted", "is_swayed", "taint", "is_summary_tainted")
"""Fields that say whether content from outside had a part in a record."""
_CANARY: Final = re.compile(r"canary\.\w+")

R = TypeVar("R", bound=Record)


def filled(of: type[R], **fixed: Any) -> R:
    """Return a record with a canary in each text, but for the fields that are given."""
    return msgspec.convert(_struct(of, of.__name__) | _plain(fixed), of)


def canaries_in(text: str) -> list[str]:
    """Return the canaries that a text shows."""
    return sorted(set(_CANARY.findall(text)))


def marked_records() -> Iterator[type[Record]]:
    """Yield every struct of the contracts that has such a mark."""
    waiting, seen = [Record], set[type[Record]]()
    while waiting:
        for one in waiting.pop().__subclasses__():
            if one not in seen:
                seen.add(one)
                waiting.append(one)
                is_ours = one.__module__.startswith(contracts.__name__)
                if is_ours and set(MARKS) & set(one.__struct_fields__):
                    yield one


def _plain(fixed: dict[str, Any]) -> dict[str, Any]:
    return {name: msgspec.to_builtins(value) for name, value in fixed.items()}


def _struct(of: Any, where: str) -> dict[str, Any]:
    info = inspect.type_info(of)
    assert isinstance(info, inspect.StructType)
    given = {} if info.tag is None or info.tag_field is None else {info.tag_field: info.tag}
    for field in info.fields:
        if field.name not in MARKS and field.name != "v":
            given[field.encode_name] = _value(field.type, f"{where}_{field.name}")
    return given


def _value(type_: Any, where: str) -> Any:
    if type(type_) in _PLAIN:
        return _PLAIN[type(type_)]
    match type_:
        case inspect.StrType(pattern=pattern):  # the one that has a pattern is a `ChildKind`
            found: Any = f"canary.{where}" if pattern is None else "reader"
        case inspect.AnyType():
            found = f"canary.{where}"
        case inspect.LiteralType(values=values):
            found = values[0]
        case inspect.VarTupleType(item_type=item):
            found = [_value(item, where)]
        case inspect.DictType(value_type=value):
            found = {f"canary.{where}_key": _value(value, where)}
        case inspect.UnionType(types=types):
            told = [one for one in types if not isinstance(one, inspect.NoneType)]
            found = _value(told[0], where)
        case inspect.StructType(cls=cls):
            found = _struct(cls, where)
        case _:
            raise AssertionError(f"{where}: {type_} can't be filled")
    return found


_PLAIN: Final[dict[type, Any]] = {
    inspect.IntType: 1,
    inspect.FloatType: 1,
    inspect.BoolType: False,
    inspect.DateTimeType: AT.isoformat(),
}
