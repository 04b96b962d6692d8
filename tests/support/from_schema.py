"""Values that a JSON Schema allows, for requests that a document calls valid.

It knows what OpenAPI documents of ours use; a keyword that it doesn't know is an error, so that
nothing is passed over silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC
from functools import cache
from typing import Any, Final

import jsonschema
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

_SAID_ONLY: Final = {
    "title",
    "description",
    "default",
    "examples",
    "discriminator",
    "contentMediaType",
    "contentSchema",
    "contentEncoding",
}
_KNOWN: Final = _SAID_ONLY | {
    "$ref",
    "anyOf",
    "enum",
    "const",
    "type",
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "uniqueItems",
    "oneOf",
    "not",
    "dependentRequired",
}
SHOWN: Final = st.characters(
    codec="utf-8", exclude_categories=("Cn", "Co", "Cf", "Zl", "Zp", "Zs"), include_characters=" "
)
"""What a font shows, and control characters; no schema tells what is shown from what isn't."""
_OF_PATTERNS: Final = st.characters(
    codec="utf-8",
    max_codepoint=0x17F,
    exclude_categories=("Cn", "Co", "Cf", "Zl", "Zp", "Zs"),
    include_characters=" ",
)
"""Fewer: each class of a pattern is looked up among all of them."""
_TEXT: Final = st.text(SHOWN.filter(lambda one: one != "\0"), max_size=12)
_TIMES: Final = ["2031-06-01T09:00", "2031-06-01T09:00Z", "2031-06-01T09:00:00+02:00"]
_FORMATS: Final = {
    "date-time": st.datetimes(timezones=st.just(UTC)).map(lambda at: at.isoformat()),
    "date": st.dates().map(lambda day: day.isoformat()),
    "uuid": st.uuids().map(str),
    "cron": st.sampled_from(["0 9 * * 1-5", "*/5 * * * *", "@daily", "0 0 9 1 * *"]),
    "time-zone": st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    "instant-or-local-time": st.sampled_from(_TIMES),
    "pause": st.sampled_from(["", "on", *_TIMES]),
    "json-pointer": st.sampled_from(["", "/items/0/version"]),
    "uri": st.sampled_from(["https://news.example.com/feed", "http://a.example.org/?q=1"]),
    "workspace-glob": st.sampled_from(["notes/**/*.md", "*"]),
    "trusted-source": st.sampled_from(["hook:ci", "url:https://news.example.com/"]),
    "language-tag": st.sampled_from(["de-AT", "en", "zh-Hant"]),
    "fact-shape": st.sampled_from(["yes_no", "one_of[red, green]", "count[0..99]", "instant"]),
    "binary": _TEXT,
}
DEEP: Final = 3
"""Objects within so many others have the fields that they need, and no more."""
_ANYTHING: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | _TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXT, inner, max_size=2),
    max_leaves=3,
)


class Schemas:
    """The schemas of one document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._named = document["components"]["schemas"]
        self._made: dict[tuple[str, int], st.SearchStrategy[Any]] = {}

    def whole(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema itself, where it is a reference."""
        while "$ref" in schema:
            schema = self._named[schema["$ref"].rpartition("/")[2]]
        return schema

    def values(self, schema: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
        """Return what a schema allows; made once, since each is looked through before it's used."""
        known = json.dumps(schema), min(depth, DEEP)
        if known not in self._made:
            self._made[known] = self._new(self.whole(schema), depth)
        return self._made[known]

    def _new(self, schema: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:
        if unknown := schema.keys() - _KNOWN:
            raise NotImplementedError(f"{unknown} in {schema}")
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        if "const" in schema:
            return st.just(schema["const"])
        if "not" in schema and schema.get("type") == "string":
            without = {key: one for key, one in schema.items() if key != "not"}
            return self.values(without, depth).filter(self._is_valid(schema))
        if "anyOf" in schema and schema.get("type") != "object":
            around = {key: one for key, one in schema.items() if key != "anyOf"}
            return st.one_of([self.values(around | one, depth) for one in schema["anyOf"]])
        kinds = schema.get("type", [])
        if isinstance(kinds, list):
            return (
                st.one_of([self.values(schema | {"type": kind}, depth) for kind in kinds])
                if kinds
                else _ANYTHING
            )
        return self._of_type(kinds, schema, depth)

    def bodies(self, schema: dict[str, Any]) -> Iterator[st.SearchStrategy[Any]]:
        """Yield what it allows with each of its fields alone beside those that are required, and
        with any of them: a field that is refused hides no other."""
        schema = self.whole(schema)
        if "properties" not in schema:
            yield self.values(schema)
            return
        for name in schema["properties"]:
            yield self._object(schema, 0, always={name}, never=schema["properties"].keys() - {name})
        yield self.values(schema)

    def _of_type(self, kind: str, schema: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:
        bounds = schema.get("minimum"), schema.get("maximum")
        made: dict[str, Callable[[], st.SearchStrategy[Any]]] = {
            "null": st.none,
            "boolean": st.booleans,
            "integer": lambda: st.integers(*bounds),
            "number": lambda: st.floats(*bounds, allow_nan=False, allow_infinity=False),
            "string": lambda: _string(schema),
            "array": lambda: self._array(schema, depth),
            "object": lambda: self._object(schema, depth),
        }
        return made[kind]()

    def _array(self, schema: dict[str, Any], depth: int) -> st.SearchStrategy[list[Any]]:
        inner = self.values(schema.get("items", {}), depth + 1)
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", least + 3), least + 3)
        is_unique = schema.get("uniqueItems", False)
        return st.lists(inner, min_size=least, max_size=most, unique=is_unique)

    def _object(
        self, schema: dict[str, Any], depth: int, *, always: set[str] | None = None, never: Any = ()
    ) -> st.SearchStrategy[Any]:
        """Return objects: with the fields `always`, and without those of `never`, as far as the
        schema allows."""
        required = set(schema.get("required", ())) | (always or set())
        ways = [required]
        for kind in ("oneOf", "anyOf"):
            ways = [
                way | set(one["required"])
                for one in schema.get(kind, [{"required": ()}])
                for way in ways
            ]
        followed = schema.get("dependentRequired", {})
        ways = [way | {more for name in way for more in followed.get(name, ())} for way in ways]
        of_one = {name for one in schema.get("oneOf", ()) for name in one["required"]}
        ways = [way for way in ways if len(way & of_one) <= 1]
        made = st.one_of(
            [self._with(schema, depth, way, {*never, *(of_one - way), *followed}) for way in ways]
        )
        if not schema.keys() & {"oneOf", "anyOf", "not", "dependentRequired"}:
            return made
        return made.filter(self._is_valid(schema))

    def _is_valid(self, schema: dict[str, Any]) -> Callable[[Any], bool]:
        whole = schema | {"components": {"schemas": self._named}}
        return jsonschema.Draft202012Validator(whole).is_valid

    def _with(
        self, schema: dict[str, Any], depth: int, required: set[str], never: set[str]
    ) -> st.SearchStrategy[Any]:
        shown = {
            name: self.values(one, depth + 1)
            for name, one in schema.get("properties", {}).items()
            if name in required or (name not in never and depth < DEEP)
        }
        # What is needed says something: a null would be as if it weren't there.
        made = st.fixed_dictionaries(
            {name: _saying(one) for name, one in shown.items() if name in required}
            if schema.keys() & {"oneOf", "anyOf"}
            else {name: one for name, one in shown.items() if name in required},
            optional={name: one for name, one in shown.items() if name not in required},
        )
        more = schema.get("additionalProperties", True)
        if more is False or (more is True and "properties" in schema):
            return made
        least = schema.get("minProperties", 0)
        named = schema.get("propertyNames")
        names = _TEXT if named is None else _string(named)
        rest = st.dictionaries(
            names.filter(lambda name: name not in schema.get("properties", {})),
            _ANYTHING if more is True else self.values(more, depth + 1),
            min_size=least,
            max_size=min(least + 1, schema.get("maxProperties", least + 1)),
        )
        return st.tuples(made, rest).map(lambda both: both[1] | both[0])


@cache
def _saying(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values.filter(_says)


def _says(value: Any) -> bool:
    return value is not None and value != ""


def _string(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if (form := schema.get("format")) is not None:
        return _FORMATS[form]
    if (pattern := schema.get("pattern")) is None:
        shortest = st.text(
            SHOWN,
            min_size=least,
            max_size=min(least + 12, least + 12 if most is None else most),
        )
        longest = st.just("x" * most) if most is not None and most <= 5000 else st.nothing()
        return shortest | longest
    return _matching(pattern, least, most)


@cache
def _matching(pattern: str, least: int, most: int | None) -> st.SearchStrategy[str]:
    """Return what matches; made once, since it takes long to be looked through."""
    # ECMA 262: `$` is the end, and not before a last newline.
    return st.from_regex(re.sub(r"\$(?=$|\))", r"\\Z", pattern), alphabet=_OF_PATTERNS).filter(
        lambda text: len(text) >= least and (most is None or len(text) <= most)
    )


def drawn(values: st.SearchStrategy[Any], count: int) -> list[Any]:
    """Return `count` of them, always the same."""
    found: list[Any] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(values)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found
