"""What may be remembered, and the records that a question becomes. Pure.

The types of :mod:`vigil.memory.questions` say most of it; here is what a type can't say. Nothing is
cleaned up: what can't be stored as it is, is refused with the field and the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from vigil.contracts import (
    IMPORTANCE,
    Memory,
    MemoryLink,
    MemorySaved,
    SaveMemory,
)
from vigil.errors import InvalidInput
from vigil.memory.operations.save import Save
from vigil.memory.questions import CONTENT_BYTES_MAX, Question
from vigil.subjects import Scope, token_of

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Control characters but tab, line feed and carriage return."""
_PATH: Final = re.compile(r" - at `\$\.?(.*)`$")
Q = TypeVar("Q", bound=Question)
_FIELD: Final = re.compile(r"(?:unknown|required) field `([^`]*)`")


def decode(data: bytes, kind: type[Q]) -> Q:
    """Decode a question.

    Raises:
        InvalidInput: naming the field and the reason.
    """
    try:
        question = msgspec.json.decode(data or b"{}", type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise invalid(str(error)) from error
    check_characters(msgspec.structs.asdict(question))
    return question


def invalid(text: str, where: str = "body") -> InvalidInput:
    """Tell what msgspec found, by field and reason.

    >>> str(invalid("Expected `str`, got `int` - at `$.content`"))
    'content: Expected `str`, got `int`'
    >>> str(invalid("Object contains unknown field `color`"))
    'color: Object contains unknown field `color`'
    """
    match = _PATH.search(text)
    reason = text[: match.start()] if match else text
    path = match.group(1) if match else ""
    if (named := _FIELD.search(reason)) is not None:
        path = f"{path}.{named.group(1)}" if path else named.group(1)
    return InvalidInput(path or where, reason)


def check_characters(fields: Mapping[str, Any]) -> None:
    """Refuse control characters in any text. Raises: InvalidInput."""
    for field, value in fields.items():
        _check(field, value)


def _check(field: str, value: Any) -> None:
    if isinstance(value, str):
        if (found := _CONTROL.search(value)) is not None:
            raise InvalidInput(field, f"must not contain the character U+{ord(found[0]):04X}")
    elif isinstance(value, tuple):
        for number, one in enumerate(value):
            _check(f"{field}[{number}]", one)
    elif isinstance(value, msgspec.Struct):
        for name, one in msgspec.structs.asdict(value).items():
            _check(f"{field}.{name}", one)


def check_content(content: str) -> None:
    """Refuse what is no memory. Raises: InvalidInput."""
    if not content.strip():
        raise InvalidInput("content", "must not be empty")
    size = len(content.encode("utf-8", "surrogatepass"))
    if size > CONTENT_BYTES_MAX:
        raise InvalidInput("content", f"must have at most {CONTENT_BYTES_MAX} bytes, has {size}")


def check_save(save: Save, now: datetime) -> None:
    """Refuse what can't be remembered. Raises: InvalidInput."""
    check_content(save.content)
    if save.expires_at is not None and save.expires_at <= now:
        raise InvalidInput("expires_at", "is in the past")


def memory_id(scope: Scope, save: Save, random_id: str) -> str:
    """Return the id of what is saved: with a key the same for every repeat.

    >>> save = Save(content="x", by="user:ann", key="k")
    >>> memory_id(Scope("a", "b"), save, "1") == memory_id(Scope("a", "b"), save, "2")
    True
    """
    if not save.key:
        return token_of("memory", random_id)
    return token_of("memory", scope.agent, scope.owner, save.key)


def saved(scope: Scope, save: Save, *, random_id: str, now: datetime) -> MemorySaved:
    """Build the record of a memory that was checked."""
    id_ = memory_id(scope, save, random_id)
    memory = Memory(
        id=id_,
        content=save.content,
        created_at=now,
        type=save.type,
        importance=IMPORTANCE[save.type] if save.importance is None else save.importance,
        source=save.source,
        stability=save.stability,
        thread=save.thread,
        occurred_at=save.occurred_at,
        expires_at=save.expires_at,
        valid_from=save.valid_from,
        valid_to=save.valid_to,
        provenance=save.provenance,
        is_tainted=save.is_tainted,
    )
    edges = tuple(
        MemoryLink(from_id=id_, to_id=link.to_id, relation=link.relation, weight=link.weight)
        for link in save.links
    )
    return MemorySaved(
        id=f"save-{id_}",
        agent=scope.agent,
        owner=scope.owner,
        at=now,
        by=save.by,
        memory=memory,
        edges=edges,
    )


def save_of(effect: SaveMemory, session_key: str) -> Save:
    """Return what a turn asks to remember. A repeat of the effect is the same memory."""
    payload = effect.payload
    return Save(
        content=payload.content,
        by=f"session:{session_key}",
        type=payload.type,
        importance=payload.importance,
        source=payload.source,
        stability=payload.stability,
        thread=payload.thread,
        occurred_at=payload.occurred_at,
        expires_at=payload.expires_at,
        provenance=payload.provenance,
        is_tainted=payload.is_tainted,
        key=effect.id,
    )


def is_same(memory: Memory, save: Save) -> bool:
    """Whether a key that was used before was used for this."""
    return (memory.content, memory.type, memory.source) == (save.content, save.type, save.source)
