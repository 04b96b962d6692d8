"""Whether the arguments of a call fit the JSON Schema of its tool (SPEC X-6). Pure.

The schema of an MCP tool is a stranger's, and it is checked here, in the process that holds all
sessions. So nothing in it may take long or reach out: no reference leads out of it, the work is
counted and ends at a limit, and what could run away in one step (a regular expression) is ignored,
as is `$schema`, which would bring another dialect with all of that back. What can't be checked in
bounded work isn't: whoever runs the tool checks the arguments, too. This check is there so that the
model, or the person who edits a request, is told at once what is wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import msgspec

from vigil.contracts import Tool
from vigil.contracts.arguments import renamed
from vigil.errors import InvalidInput

if TYPE_CHECKING:
    from .schema_check import SchemaCheck

SCHEMA_BYTES_MAX: Final = 64 * 1024
KEPT_MAX: Final = 500
"""Compiled validators that are kept; the ones that were not used for longest go."""
FOREIGN: Final = "__"
"""Stands in the names of the tools of MCP servers."""

_kept: OrderedDict[tuple[str, bytes], SchemaCheck | None] = OrderedDict()
"""Compiled schemas, by what they are made of: remembering one changes no answer."""


def problem(tool: Tool, arguments: dict[str, Any]) -> str | None:
    """Return what doesn't fit, with the field's name; None if all does, or it can't be checked.

    >>> shout = Tool(name="shout", description="", input_schema={
    ...     "type": "object", "properties": {"times": {"type": "integer"}}, "required": ["times"]})
    >>> problem(shout, {"times": 3})
    >>> problem(shout, {"times": "3"})
    "times: '3' is not of type 'integer'"
    >>> problem(shout, {})
    "the arguments: 'times' is a required property"
    """
    check = _check_of(tool)
    if check is None:
        return None
    try:
        return check.problem(arguments)
    except Exception:
        # A schema that is none fails in ways of its own: bad types, references to nowhere or round
        # in circles, more steps than it may take.
        return None


def _check_of(tool: Tool) -> SchemaCheck | None:
    """Return the compiled schema; None if it can't be used."""
    try:
        encoded = msgspec.json.encode(tool.input_schema)
    except (msgspec.MsgspecError, TypeError, RecursionError):
        return None
    if len(encoded) > SCHEMA_BYTES_MAX:
        return None
    key = (FOREIGN if FOREIGN in tool.name else "", encoded)
    if key not in _kept:
        _kept[key] = _compiled(tool)
        if len(_kept) > KEPT_MAX:
            _kept.popitem(last=False)
    _kept.move_to_end(key)
    return _kept[key]


def _compiled(tool: Tool) -> SchemaCheck | None:
    from .schema_check import SchemaCheck

    try:
        return SchemaCheck(tool.input_schema, is_foreign=FOREIGN in tool.name)
    except Exception:
        return None


def fitted(tool: Tool, given: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the arguments by the names of the schema, and what doesn't fit, as `problem`.

    >>> schema = {"properties": {"zone": {"type": "string"}}, "additionalProperties": False}
    >>> clock = Tool(name="clock", description="", input_schema=schema, other_names={"tz": "zone"})
    >>> fitted(clock, {"tz": "Asia/Tokyo"})
    ({'zone': 'Asia/Tokyo'}, None)
    >>> fitted(clock, {"tz": "Asia/Tokyo", "zone": "UTC"})[1]
    'tz: is another name of zone: give one of them'
    """
    try:
        arguments = renamed(given, tool.other_names)
    except InvalidInput as error:
        return given, str(error)
    return arguments, problem(tool, arguments)
