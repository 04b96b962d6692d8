"""FastAPI, imported without building what it may never use, for whoever imports this first.

It has models of the parts of an OpenAPI document, which take 50 ms of CPU to build, and check what
`get_openapi` makes: they are built then (fastapi 0.163, pydantic 2.13).
"""

from __future__ import annotations

from . import import_unbuilt

import_unbuilt("fastapi")
