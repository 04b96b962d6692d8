"""What a start imports: each process pays for it in time and memory."""

from __future__ import annotations

import subprocess
import sys

STARTED = (
    *(f"services.{one}.__main__" for one in (
        "gateway", "cortex", "memory", "scheduler", "executor", "delivery",
    )),
    "vigil.cli.app",
    "vigil.backup.backup",
)  # fmt: skip
UNNEEDED = (
    "aiogram", "aiohttp", "anthropic", "apprise", "cloudevents", "cryptography", "icalendar",
    "jeepney", "jsonschema", "mcp", "nio", "numpy", "onnxruntime", "openai", "qdrant_client",
    "qdrant_edge", "rich", "snowballstemmer", "tokenizers", "wordllama",
)  # fmt: skip


def test_what_few_need_is_imported_when_it_is_used() -> None:
    """P-1: neither a service's start nor a command waits for it."""
    code = f"import sys, {', '.join(STARTED)}; print(*{set(UNNEEDED)} & sys.modules.keys())"
    # Of FastAPI's models of a document only names are made; a document builds them.
    code += "; from fastapi.openapi.models import OpenAPI as built"
    code += "; print('built' * built.__pydantic_complete__)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True
    )
    assert not done.stdout.strip()


def test_up_imports_no_other_command() -> None:
    """P-1: what it starts is forked from it, and has all that it has."""
    code = "import sys, vigil.cli; sys.argv = ['vigil', 'up', '--help']; vigil.cli.main()"
    tell = "atexit.register(lambda: print('vigil.cli.app' in sys.modules))"
    code = f"import atexit, sys; {tell}; {code}"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "False"
    assert "--detach" in done.stdout
