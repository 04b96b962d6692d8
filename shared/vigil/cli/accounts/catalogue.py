"""`vigil mcp search`, `vigil mcp add --from`: servers of the catalogue that a registry publishes.

What is in it is written by whoever publishes there. It's shown whole before anything is added.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from vigil.errors import ConfigError
from vigil.local import catalogue
from vigil.local.catalogue import CatalogueOffer, Published
from vigil.local.registry import REGISTRY, servers_of
from vigil.settings import config

from .. import output, tables
from ..tables import Column, Result

Registry = Annotated[
    str,
    typer.Option(
        metavar="URL|FILE",
        help="A registry, or a file with its answer. Default: gateway.registry.",
    ),
]
_COLUMNS: Final = (
    Column("NAME", "name"),
    Column("VERSION", "version"),
    Column("BY", "by"),
    Column("DESCRIPTION", "description"),
)


def search(
    words: Annotated[list[str], typer.Argument(help="All of them stand in its name or text.")],
    registry: Registry = "",
) -> Result:
    """Find MCP servers in a catalogue; `vigil mcp add NAME --from FOUND` adds one."""
    wanted = " ".join(words)
    found = [_view(one) for one in catalogue.found(_servers(registry, words[0]), wanted)]
    return tables.listing("servers", found, _COLUMNS, empty=f"None has {wanted!r}.")


def _view(one: Published) -> dict[str, Any]:
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
    offer = catalogue.offer_of(catalogue.named(_servers(registry, name), name), env)
    output.message("\n".join((f"{output.printable(name)}:", *map(_line, offer.lines))))
    missing = [one for one in offer.wants if one.is_required]
    if missing and not has_secrets:
        option = "--headers-file" if offer.url else "--env-file, or --env for what is no secret"
        raise ConfigError(f"{name} needs {', '.join(one.name for one in missing)}: {option}")
    if not is_sure:
        if not sys.stdin.isatty():
            raise ConfigError("nobody is there to be asked; --yes adds it")
        typer.confirm("Add it?", abort=True, err=True)
    return offer


def _servers(registry: str, words: str) -> list[Published]:
    return servers_of(registry or config.load().config.gateway.registry or REGISTRY, words)


def _line(text: str) -> str:
    return f"  {output.printable(text)}"


__all__ = ["Registry", "chosen", "search"]
