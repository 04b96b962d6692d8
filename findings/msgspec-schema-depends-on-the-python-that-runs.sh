#!/usr/bin/env bash
# The JSON Schema that msgspec makes of a struct takes over its docstring as Python keeps it: before Python 3.13 with the
# blanks that indent its lines, since then without. So the same code has another document, and another digest, after a
# step from 3.12 to 3.13, and before it a reader of the document sees the blanks of the source.
#
# Expected: a description as other makers of schemas give it, cleaned (Pydantic passes docstrings through
#   `inspect.cleandoc`), and so the same bytes on each Python.
# Seen (msgspec 0.22.0, pydantic 2.13.5, 2026-11-30): on Python 3.11 and 3.12 "Where it is.\n    On the map.", on 3.13 and
#   3.14 "Where it is.\nOn the map."; of Pydantic the latter on all four.
#
# Exits with 0 as long as that is so.
set -euo pipefail
cd "$(mktemp -d)"
python3 -m venv env
env/bin/pip install --quiet msgspec==0.22.0 pydantic==2.13.5
env/bin/python - <<'PY'
import sys

import msgspec
import pydantic


class Place(msgspec.Struct):
    """Where it is.
    On the map."""


class Spot(pydantic.BaseModel):
    """Where it is.
    On the map."""


schema = msgspec.json.schema(Place)["$defs"]["Place"]["description"]
other = Spot.model_json_schema()["description"]
indent = "" if sys.version_info >= (3, 13) else "    "
print(f"Python {sys.version.split()[0]}: msgspec {schema!r}, Pydantic {other!r}")
assert schema == f"Where it is.\n{indent}On the map.", schema
assert other == "Where it is.\nOn the map.", other
PY
