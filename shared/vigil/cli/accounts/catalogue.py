"""`vigil mcp search`, `vigil mcp add --from`: servers of the catalogue that a registry publishes.

What is in it is written by whoever publishes there. It's shown whole before anything is added.
"""

from __future__ import annotations

import http.client
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import typer

from vigil.errors import ConfigError, InvalidInput, Unavailable
from vigil.local import catalogue
from vigil.local.catalogue import CatalogueOffer, Published
from vigil.net.direct import opener

from .. import output, tables
from ..tables import Column, Result

REGISTRY: Final = "https://registry.modelcontextprotocol.io"
Registry = Annotated[
    str, typer.Option(metavar="URL|FILE", help="A registry, or a file with its answer.")
]
PAGES_MAX: Final = 10
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
TIMEOUT_S: Final = 20.0
_COLUMNS: Final = (
    Column("NAME", "name"),
    Column("VERSION", "version"),
    Column("BY", "by"),
    Column("DESCRIPTION", "description"),
)


def search(
    words: Annotated[list[str], typer.Argument(help="All of them stand in its name or text.")],
    registry: Registry = REGISTRY,
) -> Result:
    """Find MCP servers in a catalogue; `vigil mcp add NAME --from FOUND` adds one."""
    wanted = " ".join(words)
    found = [_told(one) for one in catalogue.found(_read(registry, words[0]), wanted)]
    return tables.listing("servers", found, _COLUMNS, empty=f"None has {wanted!r}.")


def _told(one: Published) -> dict[str, Any]:
    ways = [package.registry_type for package in one.packages] + [way.type for way in one.remotes]
    text = output.printable(" ".join(one.description.split()))
    return {
        "name": one.name,
        "version": one.version,
        "by": " ".join(dict.fromkeys(ways)),
        "description": text,
    }


def chosen(
    name: str, registry: str, env: Mapping[str, str], *, has_secrets: bool, is_sure: bool
) -> CatalogueOffer:
    """Return what a server of the catalogue is, once a person saw it and wants it.

    Args:
        has_secrets: whether a file with variables or headers goes with it.
    """
    offer = catalogue.offer_of(catalogue.named(_read(registry, name), name), env)
    output.message("\n".join((f"{output.printable(name)}:", *map(_line, offer.told))))
    missing = [one for one in offer.wants if one.is_required]
    if missing and not has_secrets:
        option = "--headers-file" if offer.url else "--env-file, or --env for what is no secret"
        raise ConfigError(f"{name} needs {', '.join(one.name for one in missing)}: {option}")
    if not is_sure:
        if not sys.stdin.isatty():
            raise ConfigError("nobody is there to be asked; --yes adds it")
        typer.confirm("Add it?", abort=True, err=True)
    return offer


def _line(text: str) -> str:
    return f"  {output.printable(text)}"


def _read(registry: str, words: str) -> list[Published]:
    """Return what a catalogue has for some words. Raises: ConfigError, Unavailable."""
    if not registry.startswith(("https://", "http://")):
        try:
            return catalogue.read(Path(registry).expanduser().read_bytes())[0]
        except (OSError, InvalidInput) as error:
            raise ConfigError(f"--registry: {registry}: {error}") from error
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
        raise Unavailable(f"the registry {registry} can't be asked: {error}") from error
    except InvalidInput as error:
        raise ConfigError(f"--registry: {registry}: {error}") from error


__all__ = ["REGISTRY", "Registry", "chosen", "search"]
