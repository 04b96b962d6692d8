"""What there is to say of a program of others: where it comes from, how it's run, what is asked."""

from __future__ import annotations

from typing import Literal

import msgspec


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A call of one of its tools. Texts may hold `{work}`, `{page}` and the like (`places`)."""

    tool: str
    given: dict[str, object] = {}
    expects: str
    """A regular expression that is found in what the talk is told."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A server.

    Attributes:
        package: its name at PyPI or npm; `version` is the one that is run.
        beside: what else is installed at a version, where what it asks for has gone on without it.
        command: over stdio; of one over HTTP (`path`) what the test starts itself, with `{port}`.
        options: of `vigil mcp add`.
    """

    name: str
    source: Literal["pypi", "npm"]
    package: str
    version: str
    beside: tuple[str, ...] = ()
    command: tuple[str, ...]
    environ: dict[str, str] = {}
    path: str = ""
    options: tuple[str, ...] = ()
    asked: tuple[Asked, ...]
    said: str = ""
    """What is to be known of it, in the table."""

    @property
    def pins(self) -> tuple[str, ...]:
        """What pip installs."""
        return (f"{self.package}=={self.version}", *self.beside)
