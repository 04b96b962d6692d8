"""Options of a command, made from the fields of a memory operation's struct.

What a field may be, what it is unless it is given, and what it means is said once, in the struct.
"""

from __future__ import annotations

import enum
import functools
import inspect
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

import typer
from msgspec import inspect as structs

from vigil.memory.questions import Question

from . import completion, options
from .registry import keyword, parameters_of, with_parameters
from .times import moment, until

Agent = Annotated[
    str, typer.Option("--agent", help="Whose memory.", autocompletion=completion.agents)
]
User = Annotated[
    str | None, typer.Option("--user", help="Somebody else's memory; needs an admin token.")
]
FLAGS: Final = {
    "types": "type",
    "with_ended": "ended",
    "with_pruned": "pruned",
    "occurred_at": "at",
    "expires_at": "expires",
}
"""Fields whose option has another name."""
_RFC_3339: Final = re.compile(r"\(RFC 3339.*?\)")


def options_of(
    question: type[Question], *fields: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command, as its ``**given``, these fields of `question`, and whose memory is meant.

    What isn't given is the field's default, or None where that is empty.
    """
    infos = {one.name: one for one in structs.type_info(question).fields}  # type: ignore[attr-defined]
    made = [_parameter(infos[name]) for name in fields]
    made += [keyword("agent", Agent, default="vigil"), keyword("user", User, default=None)]

    def declare(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(**given: Any) -> Any:
            return work(**given)

        *own, _ = parameters_of(work)
        return with_parameters(work, run, [*own, *made])

    return declare


def _parameter(field: structs.Field) -> inspect.Parameter:
    flag = FLAGS.get(field.name, field.name.replace("_", "-"))
    kind, text = _described(field.type)
    option, settings = _option(kind, flag)
    info = typer.Option(f"--{flag}", help=text, **settings)
    return keyword(field.name, Annotated[option, info], default=field.default or None)


def _described(kind: structs.Type) -> tuple[structs.Type, str]:
    """Return a type without None, and what it says of itself."""
    text = ""
    if isinstance(kind, structs.Metadata):
        text = (kind.extra_json_schema or {}).get("description", "")
        kind = kind.type
    if isinstance(kind, structs.UnionType):
        (kind,) = (one for one in kind.types if not isinstance(one, structs.NoneType))
    return kind, _RFC_3339.sub("(2026-11-20, or 7d for a week ago)", text)


def _option(kind: structs.Type, flag: str) -> tuple[Any, dict[str, Any]]:
    """Return the type of an option, and what else it needs."""
    match kind:
        case structs.BoolType():
            return bool, {}
        case structs.IntType(ge=least, le=most) | structs.FloatType(ge=least, le=most):
            number = int if isinstance(kind, structs.IntType) else float
            return number, {"min": least, "max": most}
        case structs.LiteralType(values=values):
            return Literal.__getitem__(values), {}
        case structs.VarTupleType(item_type=structs.LiteralType(values=values)):
            members = {str(value): value for value in values}
            several: Any = enum.StrEnum("Choice", members)  # type: ignore[misc]
            return list[several], {}
        case structs.DateTimeType():
            parse = functools.partial(_moment, flag)
            return datetime, {"metavar": "WHEN", "parser": parse}
        case _:
            return str, {}


def _moment(flag: str, text: str) -> datetime:
    now = datetime.now(UTC)

    def zone() -> str:
        return str(options.client().person()["timezone"])

    if flag != FLAGS["expires_at"]:
        return moment(flag, text, now, zone)
    return until(flag, text, now, zone) or now
