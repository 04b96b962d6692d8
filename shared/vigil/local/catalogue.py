"""MCP servers as a registry publishes them: read, found, and made into a section. Pure.

Whoever publishes there writes what stands in it: names, descriptions, which program is fetched and
run. So nothing of it is taken up before a person saw it, and what can't be told exactly isn't.

Source: server.json of the MCP registry, schema 2025-12-11, and its `GET /v0/servers`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from ..errors import ConfigError, InvalidInput
from ..words.nearest import did_you_mean

RUNNERS: Final = {"npm": ("npx", "-y"), "pypi": ("uvx",)}
"""By the registry of a package: what fetches and runs it."""
_SEPARATORS: Final = {"npm": "@", "pypi": "=="}
_BASES: Final = {"npm": "registry.npmjs.org", "pypi": "pypi.org"}
"""Where what runs them fetches from: by the same name another registry may have another program."""
_NAMES: Final = {
    "npm": re.compile(r"(@[a-z0-9~][a-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*", re.ASCII),
    "pypi": re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\[[a-z0-9,._-]+\])?", re.ASCII),
}
"""What else what runs them takes in the place of a name: an address, a folder, a repository."""
_VERSIONS: Final = {
    "npm": re.compile(r"\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?", re.ASCII),
    "pypi": re.compile(r"(\d+!)?\d[0-9A-Za-z.]*(\+[0-9A-Za-z.]+)?", re.ASCII),
}
"""One version: anything else means another program by another time."""
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_DIVERTING: Final = re.compile(
    r"(npm_|uv_|pip_|ld_|dyld_|git_|bash_|xdg_|glibc_|openssl_).*|.*_proxy|.*path|home|env|shell"
    r"|node_(?!env$).*|python(?!unbuffered$|utf8$|ioencoding$|dontwritebytecode$).*"
    r"|ssl_cert_\w+|\w+_ca_bundle",
    re.I,
)
"""Variables by which another program would be fetched, or run, than the one that is shown: also by
what npx and uvx run with, Node and Python, which load what such a variable names before it."""
SHOWN_MAX: Final = 4000
"""Characters of a command, or of what is set: nobody looks through more before it's added."""
ACTIVE: Final = "active"
_OFFICIAL: Final = "io.modelcontextprotocol.registry/official"


class Wish(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A variable, header or argument that a server takes."""

    name: str = ""
    description: str = ""
    is_required: bool = False
    is_secret: bool = False
    value: str | None = None
    default: str | None = None
    type: str = ""
    """Of an argument: `named`, or `positional`."""

    @property
    def given(self) -> str | None:
        """What it is if nobody says otherwise."""
        return self.default if self.value is None else self.value


class Transport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How one talks to a program, or where a service is."""

    type: str = "stdio"
    url: str = ""
    headers: tuple[Wish, ...] = ()


class Package(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A program that somebody publishes."""

    registry_type: str
    identifier: str
    version: str = ""
    registry_base_url: str = ""
    transport: Transport = Transport()
    environment_variables: tuple[Wish, ...] = ()
    package_arguments: tuple[Wish, ...] = ()
    runtime_arguments: tuple[Wish, ...] = ()


class Published(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A server.json."""

    name: str
    description: str = ""
    title: str = ""
    version: str = ""
    packages: tuple[Package, ...] = ()
    remotes: tuple[Transport, ...] = ()


class _Listed(msgspec.Struct, frozen=True, kw_only=True):
    server: Published
    meta: dict[str, Any] = msgspec.field(default_factory=dict, name="_meta")


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    next_cursor: str | None = None


class _Page(msgspec.Struct, frozen=True):
    servers: tuple[_Listed, ...]
    metadata: _Metadata = _Metadata()


_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)


def read(data: bytes) -> tuple[list[Published], str | None]:
    """Return the servers of an answer of a registry, or of a file that holds one, or one
    server.json; and where the list goes on. What was deleted or superseded is left out.

    Raises: InvalidInput, it is none of these.
    """
    try:
        page = msgspec.json.decode(data, type=_Page)
    except _UNREADABLE as error:
        try:
            return [msgspec.json.decode(data, type=Published)], None
        except _UNREADABLE:
            raise InvalidInput("registry", f"is no list of servers: {error}") from error
    return [one.server for one in page.servers if _is_current(one.meta)], page.metadata.next_cursor


def _is_current(meta: Mapping[str, Any]) -> bool:
    official = meta.get(_OFFICIAL)
    if not isinstance(official, dict):
        return True
    return bool(official.get("status", ACTIVE) == ACTIVE and official.get("isLatest", True))


def found(servers: Iterable[Published], words: str) -> list[Published]:
    """Return those that have all the words, by name.

    >>> one = Published(name="io.github.ann/files", description="Reads files")
    >>> [len(found([one], words)) for words in ("FILES reads", "mail", "")]
    [1, 0, 1]
    """
    wanted = words.lower().split()
    texts = {one: f"{one.name} {one.title} {one.description}".lower() for one in servers}
    hits = [one for one, text in texts.items() if all(word in text for word in wanted)]
    return sorted(hits, key=lambda one: one.name)


def named(servers: Iterable[Published], name: str) -> Published:
    """Return the one of that name. Raises: ConfigError, there is none."""
    by_name = {one.name: one for one in servers}
    if name not in by_name:
        raise ConfigError(f"there is no {name} in the catalogue{did_you_mean(name, by_name)}")
    return by_name[name]


class CatalogueOffer(msgspec.Struct, frozen=True, kw_only=True):
    """What would be added, and what a person has to know before."""

    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    wants: tuple[Wish, ...] = ()
    """Variables, or headers, that nobody has given yet."""

    @property
    def lines(self) -> list[str]:
        """What it is, sees and reaches, in lines."""
        if self.url:
            host = urlsplit(self.url).hostname or ""
            lines = [f"asks {self.url}", f"{host} sees the arguments of the calls that agents make"]
            kind = "header"
        else:
            lines = [
                f"runs {shlex.join(self.command)}",
                "fetches that program from its registry at the start, so it reaches the network",
                "sees its own folder, the arguments of calls, and nothing else of this machine",
            ]
            kind = "variable"
        given = self.env | self.headers
        lines += [f"is given {name}={value}" for name, value in given.items()]
        wishes = (
            f"{'needs' if one.is_required else 'may have'} the {kind} {one.name}"
            f"{' (a secret)' if one.is_secret else ''}"
            f"{f': {one.description}' if one.description else ''}"
            for one in self.wants
        )
        return lines + [" ".join(wish.split()) for wish in wishes]


def offer_of(one: Published, env: Mapping[str, str]) -> CatalogueOffer:
    """Return how a server would be added: a service where there is one, else its program.

    Raises: ConfigError, it can't be: it runs in a way that isn't known here, or wants arguments.
    """
    offer = _offer_of(one, env)
    taken = (*offer.command, offer.url, *offer.headers, *offer.headers.values())
    taken += (*offer.env, *offer.env.values(), *(wish.name for wish in offer.wants))
    if not all(text.isprintable() for text in taken):
        raise ConfigError(f"{one.name} can't be shown as it is: it holds control characters")
    if (size := sum(map(len, taken))) > SHOWN_MAX:
        raise ConfigError(f"{one.name} can't be shown whole: it has {size:,} characters")
    return offer


def _offer_of(one: Published, env: Mapping[str, str]) -> CatalogueOffer:
    for way in one.remotes:
        if way.type == "streamable-http" and "{" not in way.url:
            known = {
                wish.name: wish.value
                for wish in way.headers
                if wish.value is not None and not wish.is_secret and "{" not in wish.value
            }
            wants = tuple(wish for wish in way.headers if wish.name not in known)
            if not way.url.isascii() or "@" in urlsplit(way.url).netloc:
                raise ConfigError(f"{one.name}: its URL isn't what it seems")
            return CatalogueOffer(url=way.url, headers=known, wants=wants)
    for package in one.packages:
        if package.registry_type in RUNNERS and package.transport.type == "stdio":
            return _of_package(one.name, package, env)
    kinds = sorted({package.registry_type for package in one.packages})
    kinds += sorted({way.type for way in one.remotes})
    raise ConfigError(f"{one.name} can't be added by its name: {', '.join(kinds) or 'nothing'}")


def _of_package(name: str, package: Package, env: Mapping[str, str]) -> CatalogueOffer:
    if package.runtime_arguments:
        raise ConfigError(f"{name} wants arguments for what runs it; add it by `-- COMMAND`")
    arguments: list[str] = []
    for wish in package.package_arguments:
        given = wish.given
        if given is None and wish.is_required:
            told = wish.name or wish.description or "an argument"
            raise ConfigError(f"{name} wants {told}; add it by `-- COMMAND ARGS`")
        if given is not None and "{" in given:
            raise ConfigError(f"{name} wants arguments that are to be filled in; add it by `--`")
        arguments += [wish.name] if wish.type == "named" else []
        arguments += [] if given is None else [given]
    command = RUNNERS[package.registry_type]
    kind, base = package.registry_type, package.registry_base_url
    if not _NAMES[kind].fullmatch(package.identifier):
        raise ConfigError(f"{name}: {package.identifier!r} is no name of a package")
    if not _VERSIONS[kind].fullmatch(package.version):
        raise ConfigError(f"{name}: {package.version!r} is no version of a package")
    if base and urlsplit(base).hostname != _BASES[kind]:
        raise ConfigError(f"{name} is of the registry {base!r}, which {command[0]} doesn't ask")
    known = {
        wish.name: given
        for wish in package.environment_variables
        if (given := wish.given) is not None and not wish.is_secret and "{" not in given
    }
    for variable in known:
        if not _VARIABLE.fullmatch(variable) or _DIVERTING.fullmatch(variable):
            raise ConfigError(f"{name} wants {variable!r} set, which changes what runs it")
    chosen = known | dict(env)
    program = f"{package.identifier}{_SEPARATORS[kind]}{package.version}"
    return CatalogueOffer(
        command=(*command, program, *arguments),
        env=chosen,
        wants=tuple(one for one in package.environment_variables if one.name not in chosen),
    )
