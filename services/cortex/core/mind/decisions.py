"""What a look of the mind decides, as the model writes it down: JSON, held to a schema. Pure.

An answer that isn't that is refused whole, with a reason for the model to read: of half an answer
nothing is done.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec

from vigil.contracts import TaskPriority
from vigil.contracts.board.preference import PreferenceCategory
from vigil.contracts.board.vocabulary import GoalStatus
from vigil.errors import InvalidInput
from vigil.goals.lifecycle import PARTS_MAX

from ..tools import json_answer

DECISIONS_MAX: Final = 20
"""In one answer."""
TEXT_LENGTH_MAX: Final = 4_000
WHY_LENGTH_MAX: Final = 500

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=TEXT_LENGTH_MAX)]


class MindDecision(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """What a look of the mind decided. What a model adds beside is passed over."""

    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)]
    because: Annotated[str, msgspec.Meta(min_length=1, max_length=WHY_LENGTH_MAX)]
    goal: str = ""
    """The goal that it is about, or serves."""


class RespondDecision(MindDecision, frozen=True, kw_only=True, tag="respond"):
    """Tell the person something, where they are."""

    text: Text
    can_wait: bool = False
    """Whether it is told with the next digest."""
    goal: str = ""


class CallDecision(MindDecision, frozen=True, kw_only=True, tag="tool_call"):
    tool: Text
    input: str = "{}"
    """The arguments: a JSON object as a string."""
    goal: str = ""

    def arguments(self) -> dict[str, Any]:
        """Raises: InvalidInput: they are none."""
        return _object_in("input", self.input)


def _object_in(field: str, text: str) -> dict[str, Any]:
    given = json_answer.whole(text or "{}")
    if not isinstance(given, dict):
        raise InvalidInput(field, "must hold a JSON object, written as a string")
    return given


class GoalDecision(MindDecision, frozen=True, kw_only=True, tag="create_goal"):
    description: Text
    deadline_at: datetime | None = None
    success_criteria: str = ""
    check_interval_secs: int | None = None
    priority: int | None = None


class PursuitDecision(MindDecision, frozen=True, kw_only=True, tag="update_goal"):
    goal: Text
    status: GoalStatus | None = None
    strategy: str | None = None
    priority: int | None = None
    check_interval_secs: int | None = None
    deadline_at: datetime | None = None
    facts: str = ""
    """That the goal names, as they are found: a JSON object as a string."""

    def given_facts(self) -> dict[str, Any]:
        """Raises: InvalidInput: they are none."""
        return _object_in("facts", self.facts)


class PartDecision(msgspec.Struct, frozen=True, kw_only=True):
    description: Text
    success_criteria: str = ""


class SplitDecision(MindDecision, frozen=True, kw_only=True, tag="split_goal"):
    goal: Text
    parts: Annotated[tuple[PartDecision, ...], msgspec.Meta(min_length=1, max_length=PARTS_MAX)]


class LearnDecision(MindDecision, frozen=True, kw_only=True, tag="learn_preference"):
    category: PreferenceCategory
    key: Text
    value: str | bool | float


class TaskDecision(MindDecision, frozen=True, kw_only=True, tag="create_task"):
    title: Text
    description: str = ""
    priority: TaskPriority = "medium"


class NoActionDecision(MindDecision, frozen=True, kw_only=True, tag="no_action"):
    """There is nothing to be done."""


AnyDecision = (
    RespondDecision
    | CallDecision
    | GoalDecision
    | PursuitDecision
    | SplitDecision
    | LearnDecision
    | TaskDecision
    | NoActionDecision
)


def read(text: str) -> tuple[AnyDecision, ...]:
    """Read an answer.

    Raises:
        InvalidInput: it is none; the reason is for the model to read.

    >>> said = '{"type": "no_action", "confidence": 1, "because": "all is well"}'
    >>> read(f'{{"decisions": [{said}]}}')
    (NoActionDecision(confidence=1.0, because='all is well', goal=''),)
    """
    given = json_answer.object_in(text, "decisions").get("decisions")
    if not isinstance(given, list) or not given:
        raise InvalidInput("decisions", "must be a list of one decision at least")
    if len(given) > DECISIONS_MAX:
        raise InvalidInput("decisions", f"are {len(given)}; {DECISIONS_MAX} are the most")
    try:
        found = msgspec.convert(given, tuple[AnyDecision, ...])
    except msgspec.ValidationError as error:
        raise InvalidInput("decisions", f"don't fit: {error}") from error
    for one in found:
        if isinstance(one, CallDecision):
            one.arguments()
        if isinstance(one, PursuitDecision):
            one.given_facts()
    if "\\u0000" in json.dumps(given):
        raise InvalidInput("decisions", "must not contain NUL")
    return found


# ---------------------------------------------------------------- the schema of an answer

_TEXT: Final[dict[str, Any]] = {"type": "string"}
_KINDS: Final[dict[Any, dict[str, Any]]] = {
    str: _TEXT,
    str | bool | float: _TEXT,
    str | None: {"type": ["string", "null"]},
    bool: {"type": "boolean"},
    int | None: {"type": ["integer", "null"]},
    datetime | None: {"type": ["string", "null"], "description": "RFC 3339, with its offset"},
    GoalStatus | None: {"enum": [*get_args(GoalStatus), None]},
}
"""What is said of a field's type; of a tuple and a `Literal` it follows from that."""


def _schema_of(kind: Any) -> dict[str, Any]:
    if kind in _KINDS:
        return _KINDS[kind]
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _schema_of(get_args(kind)[0])}
    return _object_of(kind, {})


def _object_of(kind: Any, first: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a struct: `first`, and the fields that it names itself."""
    types = get_type_hints(kind)
    properties = first | {name: _schema_of(types[name]) for name in kind.__annotations__}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _decision_schema(kind: Any) -> dict[str, Any]:
    type_ = {"const": kind.__struct_config__.tag}
    return _object_of(kind, {"type": type_, "because": _TEXT, "confidence": {"type": "number"}})


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "decisions": {
            "type": "array",
            "items": {"anyOf": [_decision_schema(kind) for kind in get_args(AnyDecision)]},
        }
    },
    "required": ["decisions"],
    "additionalProperties": False,
}
"""Of an answer. Every object is closed, and names all that it has: providers want that."""
