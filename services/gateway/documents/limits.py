"""What a request's schema says beyond its types: bounds that functions check in better words.

A decoder that checked them would say "Expected `str` of length >= 1"; the functions say which
limit it is and what to write. The document has both: whoever makes requests of it makes none that
are refused for their form (`tests/gateway/test_gateway_from_schema.py`). Where a form has no
keyword (a cron expression, a time zone, an instant on local clocks) there is a `format` of ours;
readers pass over a format that they don't know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from vigil.board.outside import served_kinds
from vigil.channels.matrix.section import MATRIX_ID
from vigil.fields.schema import (
    HOURS,
    LINE,
    MAYBE_SAID,
    NO_NUL,
    SAID,
    TIME,
    ZONE,
    Schema,
    length,
    within,
)
from vigil.fields.structs import components_of
from vigil.mail.ids import ADDRESS
from vigil.net.ssrf import URL_LENGTH_MAX
from vigil.settings.cortex import Cortex
from vigil.texts.pointer import POINTER_LENGTH_MAX
from vigil.watching.watched import COMMAND_LENGTH_MAX, GLOB_LENGTH_MAX, TOOL_LENGTH_MAX

from ..http.wire import OWN_KEY_SCHEMA

_URL: Final = {"format": "uri", "maxLength": URL_LENGTH_MAX}
_ARGUMENT: Final = {"minLength": 1, "maxLength": 200}
_POINTER: Final = {"format": "json-pointer", "maxLength": POINTER_LENGTH_MAX}


def _keepers() -> Schema:
    """Return the bounds of what keeps up by itself, from the configuration that it stands for."""
    _, schemas = components_of([Cortex])
    bounds = ("minimum", "maximum")
    return {
        name: {key: one[key] for key in bounds}
        for name, one in schemas["Cortex"]["properties"].items()
        if name.startswith(("autonomy_", "bulletin_", "summary_")) and one.keys() >= set(bounds)
    }


FIELDS: Final[dict[str, Mapping[str, Schema]]] = {
    **{body.__name__: one for kind in served_kinds() for body, one in kind.limits.items()},
    "AutonomyChange": _keepers(),
    "CloudEvent": {
        "id": LINE,
        "source": LINE,
        "type": LINE,
        "datacontenttype": {"minLength": 1} | LINE,
        "agentid": LINE,
        "subject": OWN_KEY_SCHEMA,
        "data_base64": {"contentEncoding": "base64", "pattern": "^([A-Za-z0-9+/]{4})*$"},
    },
    "Address": {
        "field": _ARGUMENT,
        "port": within(1, 65_535),
    },
    "Empty": {"field": _ARGUMENT},
    "Equal": {"field": _ARGUMENT},
    "Folder": {"field": _ARGUMENT},
    "LinkBody": {"name": LINE},
    "PersonChange": {
        "timezone": ZONE,
        "language": {"format": "language-tag"},
        "quiet_hours": HOURS,
        "digest_at": {"pattern": f"^{TIME}$"},
        "pause": {"format": "pause"},
    },
    "MailCodeRequest": {"address": {"pattern": ADDRESS}},
    "PairCodeRequest": {"address": {"pattern": f"^({MATRIX_ID}|[0-9]{{0,20}})$"}},
    "RaiseBody": {"agent": {"pattern": "^([A-Za-z0-9_-]{1,64})?$"}},
    "SaveBody": {"content": SAID, "source": SAID, "threadId": SAID},
    "TokenBody": {"name": LINE},
    "TrustBody": {"source": {"format": "trusted-source", "maxLength": URL_LENGTH_MAX}},
    "UndoBody": {"source": SAID},
    "WatchedCommand": {"command": length(COMMAND_LENGTH_MAX, SAID)},
    "WatchedFiles": {"glob": {"format": "workspace-glob", "maxLength": GLOB_LENGTH_MAX}},
    "WatchedFeed": {"url": _URL},
    "WatchedTool": {
        "tool": {"pattern": "^[^_]+(_[^_]+)*__.+$", "maxLength": TOOL_LENGTH_MAX},
        "pointer": _POINTER,
    },
    "WatchedUrl": {"url": _URL, "pointer": _POINTER},
}
"""schema -> field -> what more it says"""
QUERIES: Final[dict[str, Schema]] = {"Look": {"source": MAYBE_SAID, "threadId": MAYBE_SAID}}
"""The same of queries."""
WHOLE: Final[dict[str, Schema]] = {
    **{body.__name__: one for kind in served_kinds() for body, one in kind.together.items()},
    "CloudEvent": {"not": {"required": ["data", "data_base64"]}},
    "RaiseBody": {
        "not": {
            "required": ["agent", "is_for_all"],
            "properties": {"agent": {"minLength": 1}, "is_for_all": {"const": True}},
        }
    },
}
"""schema -> what it says of its fields together"""


def apply(schemas: dict[str, Schema], asked: Iterable[str] = ()) -> None:
    """Add the limits to the schemas of structs.

    Args:
        schemas: by name; changed in place.
        asked: names of those that requests are made of: no text in them holds NUL.
    """
    for name, limits in FIELDS.items():
        for field, more in limits.items():
            schemas[name]["properties"][field] |= more
    for name, more in WHOLE.items():
        schemas[name] |= more
    for name in _reached(schemas, asked):
        for schema in schemas[name].get("properties", {}).values():
            without_nul(schema)


def without_nul(schema: Schema) -> None:
    """Say of a schema, in place, that its texts hold no NUL, where nothing narrower is said."""
    if schema.keys() & {"pattern", "format", "enum"}:
        return
    for one in schema.get("anyOf", ()):
        without_nul(one)
    if "items" in schema:
        without_nul(schema["items"])
    if schema.get("type") == "string":
        schema |= NO_NUL


def _reached(schemas: dict[str, Schema], names: Iterable[str]) -> set[str]:
    """Return the schemas that some are made of, with these."""
    found: set[str] = set()
    ahead = list(names)
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schemas[name]))
    return found
