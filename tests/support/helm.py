"""Renders the chart of deploy/helm: the small part of Helm's templates that it uses, nothing else.

Values by their path, `range` over a mapping, `if` with `else`, `eq`, and the pipes `quote`,
`toJson` and `sha256sum`. Anything else is an error, so the chart can't grow past what its test
understands.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

_TAG: Final = re.compile(r"(\s*)\{\{-(.*?)\}\}|\{\{(.*?)\}\}", re.DOTALL)
_RANGE: Final = re.compile(r"range \$(\w+), \$(\w+) := (\S+)")
_PATH: Final = re.compile(r"(?:\$\w*)?(?:\.\w+)*")
Piece = tuple[str, str]
"""Its kind, text or tag, and what it says."""


def rendered(chart: Path, release: str = "vigil", **values: Any) -> Iterator[dict[str, Any]]:
    """Yield the documents that the chart makes. Raises: ValueError, it uses what isn't known."""
    given = merged(yaml.load((chart / "values.yaml").read_text("utf-8"), yaml.CSafeLoader), values)
    scope = {"": {"Values": given, "Release": {"Name": release}}}
    for file in sorted((chart / "templates").glob("*.yaml")):
        text, rest = _render(list(_pieces(file.read_text("utf-8"))), scope)
        if rest:
            raise ValueError(f"{file.name}: {rest[0][1]!r} ends nothing")
        yield from filter(None, yaml.load_all(text, yaml.CSafeLoader))


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with others over them, as Helm does it."""
    both = {
        key: merged(old[key], one)
        for key, one in new.items()
        if isinstance(one, Mapping) and isinstance(old.get(key), Mapping)
    }
    return {**old, **new, **both}


def _pieces(text: str) -> Iterator[Piece]:
    at = 0
    for tag in _TAG.finditer(text):
        yield "text", text[at : tag.start()]
        yield "tag", (tag[2] if tag[2] is not None else tag[3]).strip()
        at = tag.end()
    yield "text", text[at:]


def _render(pieces: list[Piece], scope: dict[str, Any]) -> tuple[str, list[Piece]]:
    """Return what pieces make, and those from the end or else that isn't theirs."""
    made = ""
    while pieces:
        (kind, said), pieces = pieces[0], pieces[1:]
        if kind == "text":
            made += said
        elif said in ("end", "else"):
            return made, [(kind, said), *pieces]
        elif said.startswith(("if ", "range ")):
            one, pieces = _block(said, pieces, scope)
            made += one
        else:
            made += _told(_value(said, scope))
    return made, pieces


def _block(said: str, pieces: list[Piece], scope: dict[str, Any]) -> tuple[str, list[Piece]]:
    if said.startswith("if "):
        yes, rest = _render(pieces, scope)
        no = ""
        if rest[0][1] == "else":
            no, rest = _render(rest[1:], scope)
        return (yes if _value(said[3:], scope) else no), rest[1:]
    match = _RANGE.fullmatch(said)
    if match is None:
        raise ValueError(f"no range that is known: {said!r}")
    made = ""
    for key, one in sorted(_value(match[3], scope).items()):
        text, rest = _render(pieces, {**scope, match[1]: key, match[2]: one})
        made += text
    if not _value(match[3], scope):
        _, rest = _render(pieces, {**scope, match[1]: "", match[2]: {}})
    return made, rest[1:]


def _value(said: str, scope: dict[str, Any]) -> Any:
    first, *pipes = (part.strip() for part in said.split("|"))
    words = first.split()
    if words[0] == "eq" and len(words) == 3:
        found: Any = _operand(words[1], scope) == _operand(words[2], scope)
    elif len(words) == 1:
        found = _operand(words[0], scope)
    else:
        raise ValueError(f"not known: {said!r}")
    for pipe in pipes:
        match pipe:
            case "quote" | "toJson":
                found = json.dumps(found if pipe == "toJson" else _told(found))
            case "sha256sum":
                found = hashlib.sha256(_told(found).encode()).hexdigest()
            case _:
                raise ValueError(f"no such pipe: {pipe!r}")
    return found


def _operand(word: str, scope: dict[str, Any]) -> Any:
    if word.startswith('"'):
        return json.loads(word)
    if not _PATH.fullmatch(word):
        raise ValueError(f"not known: {word!r}")
    name, *path = word.split(".")
    found = scope[name.removeprefix("$")]
    for one in path:
        if one not in found:
            raise ValueError(f"{word}: there is no {one}")
        found = found[one]
    return found


def _told(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
