"""What a JSON schema says of a field beyond its type. Pure.

A decoder that checked it would say "Expected `str` of length >= 1"; functions check it, in better
words, and the document says it, so that whoever makes requests of it makes none that are refused
for their form.
"""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

_CONTROL: Final = r"\u0000-\u001f\u007f-\u009f"
NO_NUL: Final = {"pattern": r"^[^\u0000]*$"}
_BLANK: Final = r"\s\u001c-\u001f\u0085"
"""Of ECMA 262 and of Python: what is blank to one of them."""
SAID: Final = {"pattern": rf"^[^\u0000]*[^\u0000{_BLANK}][^\u0000]*$"}
"""Not blank."""
MAYBE_SAID: Final = {"pattern": f"^$|{SAID['pattern']}"}
LINE: Final = {"pattern": rf"^[^{_CONTROL}]*$"}
"""One line, or nothing."""
SAID_LINE: Final = {"pattern": rf"^[^{_CONTROL}]*[^{_CONTROL}\s][^{_CONTROL}]*$"}
PART: Final = "[A-Za-z0-9_-]{1,64}"
"""Of a session key."""
SESSION_KEY: Final = {"pattern": f"^{PART}:{PART}:{PART}$"}
MAYBE_ID: Final = {"pattern": "^([0-9a-f]{32})?$"}

TIME: Final = "([01][0-9]|2[0-3]):[0-5][0-9]"
"""On clocks: a pattern."""
HOURS: Final = {"pattern": f"^({TIME}-{TIME})?$"}
ZONE: Final = {"format": "time-zone", "maxLength": 100}


def length(most: int, more: Schema) -> Schema:
    """Return what says that a text has at most so many characters, and `more`."""
    return {"maxLength": most} | more


def within(least: int, most: int) -> Schema:
    """Return what says that a number is one of these."""
    return {"minimum": least, "maximum": most}


def given(name: str) -> Schema:
    """Return what says that a field is there, and neither null nor empty."""
    return {"required": [name], "properties": {name: {"not": {"enum": [None, ""]}}}}
