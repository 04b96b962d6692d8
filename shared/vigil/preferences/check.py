"""What a preference may hold: each refusal names the field and the reason."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from ..contracts.board import BoardPreference
from ..errors import InvalidInput
from ..subjects import Scope, check_part, token_of
from ..tasks.check import check_text

KEY_LENGTH_MAX: Final = 64
KEY_PATTERN: Final = r"^[a-z0-9][a-z0-9_.-]*$"
_KEY: Final = re.compile(KEY_PATTERN[:-1] + r"\Z", re.ASCII)
VALUE_BYTES_MAX: Final = 1_000
LEARNED_FROM_LENGTH_MAX: Final = 500


def id_of(whose: Scope, key: str) -> str:
    """Return the id of an owner's preference: each key has one."""
    return token_of("preference", whose.agent, whose.owner, key)


def check(preference: BoardPreference) -> BoardPreference:
    """Return a preference that may be kept. Raises: InvalidInput."""
    check_part("owner", preference.owner)
    check_part("agent", preference.agent)
    check_text("key", preference.key, KEY_LENGTH_MAX)
    if not _KEY.match(preference.key):
        raise InvalidInput("key", "must be lower-case letters, digits, '_', '-' and '.'")
    check_value(preference.value)
    for lesson in preference.learned_from:
        check_text("learned_from", lesson.text, LEARNED_FROM_LENGTH_MAX)
    return preference


def check_value(value: Any) -> None:
    """Raises: InvalidInput: it is nothing, or too much."""
    if value is None or value == "":
        raise InvalidInput("value", "must say something")
    text = msgspec.json.encode(value)
    size = len(text)
    if size > VALUE_BYTES_MAX:
        raise InvalidInput("value", f"must have at most {VALUE_BYTES_MAX} bytes, has {size}")
    if rb"\u0000" in text:
        raise InvalidInput("value", "must not contain NUL")
