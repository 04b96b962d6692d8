"""The catalogue that a registry publishes, asked over HTTP or read from a file."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from ..errors import ConfigError, InvalidInput, Unavailable
from ..net.direct import opener
from ..texts.trouble import reason_of
from . import catalogue
from .catalogue import Published

REGISTRY: Final = "https://registry.modelcontextprotocol.io"
"""MCP's own, where none is configured."""
PAGES_MAX: Final = 10
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
TIMEOUT_S: Final = 20.0


def servers_of(registry: str, words: str) -> list[Published]:
    """Return what a registry has for some words; of a file, all of it.

    Raises:
        ConfigError: it answers with something else.
        Unavailable: it can't be asked.
    """
    if not registry.startswith(("https://", "http://")):
        try:
            return catalogue.read(Path(registry).expanduser().read_bytes())[0]
        except (OSError, InvalidInput) as error:
            raise ConfigError(f"the registry {registry}: {reason_of(error)}") from error
    found: list[Published] = []
    cursor: str | None = ""
    for _ in range(PAGES_MAX):
        query = {"search": words.rpartition("/")[2], "limit": "100", "version": "latest"}
        query |= {"cursor": cursor} if cursor else {}
        more, cursor = _page(registry, query)
        found += more
        if not cursor:
            break
    return found


def _page(registry: str, query: Mapping[str, str]) -> tuple[list[Published], str | None]:
    url = f"{registry.rstrip('/')}/v0/servers?{urlencode(query)}"
    direct = opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=TIMEOUT_S) as answer:
            return catalogue.read(answer.read(ANSWER_BYTES_MAX))
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"the registry {registry} can't be asked: {reason_of(error)}") from error
    except InvalidInput as error:
        raise ConfigError(f"the registry {registry}: {error}") from error
