"""What somebody says or writes into a field of a form, as a value of it. Pure.

A form is what an MCP server asks a person (elicitation): texts, numbers, yes or no, and choices.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

_YES: Final = {"yes": True, "true": True, "ja": True, "no": False, "false": False, "nein": False}


def read(field: Any, text: str) -> Any:
    """Return words as a value of a field; as they are, if they are none: a check tells why.

    >>> read({"type": "integer"}, "4"), read({"type": "boolean"}, "Yes"), read({}, "4")
    (4, True, '4')
    >>> read({"oneOf": [{"const": "#f00", "title": "Red"}]}, "red")
    '#f00'
    >>> read({"type": "array", "items": {"enum": ["a", "b"]}}, "a, b")
    ['a', 'b']
    """
    field = field if isinstance(field, dict) else {}
    match field.get("type"):
        case "integer" | "number":
            try:
                return msgspec.json.decode(text, type=int | float)
            except msgspec.MsgspecError:
                return text
        case "boolean":
            return _YES.get(text.lower(), text)
        case "array":
            parts = [part.strip() for part in text.split(",")]
            return [read(field.get("items"), part) for part in parts if part]
    titled = [*field.get("oneOf", ()), *field.get("anyOf", ())]
    titles = {
        str(one.get("title", one["const"])).lower(): one["const"]
        for one in titled
        if isinstance(one, dict) and "const" in one
    }
    known = {str(one).lower(): one for one in field.get("enum", ())}
    return (known | titles).get(text.lower(), text)
