"""Servers of models that run on this machine: whoever answers at a usual port as they do."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec

from ..net.direct import opener

USUAL: Final[Mapping[str, int]] = {
    "Ollama": 11434,
    "LM Studio": 1234,
    "vLLM": 8000,
    "llama.cpp": 8080,
}
"""Their ports, unless told otherwise, as their documentation has them (2026-11)."""
TIMEOUT_S: Final = 1.0
ANSWER_BYTES_MAX: Final = 1024 * 1024
MODELS_MAX: Final = 20


class ModelServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server that speaks Chat Completions."""

    name: str
    """Whose port it is; another program may sit there that speaks the same."""
    url: str
    """As `base_url` of a model of it."""
    models: tuple[str, ...]
    """Ids of what it serves."""


def found(ports: Mapping[str, int] = USUAL) -> tuple[ModelServer, ...]:
    """Look at the usual ports, all at once; a second at most."""
    with ThreadPoolExecutor(max_workers=max(len(ports), 1)) as pool:
        there = pool.map(lambda one: _server_at(*one), ports.items())
    return tuple(one for one in there if one is not None)


def _server_at(name: str, port: int) -> ModelServer | None:
    url = f"http://127.0.0.1:{port}/v1"
    direct = opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{url}/models", timeout=TIMEOUT_S) as answer:
            models = ids_of(json.loads(answer.read(ANSWER_BYTES_MAX)))
    except (OSError, ValueError):
        return None
    return ModelServer(name=name, url=url, models=models) if models else None


def ids_of(answer: Any) -> tuple[str, ...]:
    """Return the models that an answer lists; empty: it's no such answer.

    >>> ids_of({"object": "list", "data": [{"id": "qwen3:8b", "object": "model"}]})
    ('qwen3:8b',)
    >>> ids_of(["hello"])
    ()
    """
    data = answer.get("data") if isinstance(answer, dict) else None
    listed = data if isinstance(data, list) else ()
    ids = (one.get("id") for one in listed if isinstance(one, dict))
    return tuple(one for one in ids if isinstance(one, str) and one)[:MODELS_MAX]
