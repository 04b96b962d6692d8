"""Who an agent is: four files a person can edit, made from templates on first contact (P-4).

    $VIGIL_HOME/agents/{agent}/SOUL.md       what it cares about, how it speaks
                               IDENTITY.md   who it is
                               ROLE.md       what it does
                               USER.md       what it should know about the person; not for a team

``{agent}`` and ``{user}`` in them stand for the names of the session. A change is seen within
two seconds; in between a turn reads no file. A file that can't be read, or isn't text, costs
its content and never the conversation.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec
import structlog

from vigil.clock import Clock, SystemClock
from vigil.files import create
from vigil.local.identity_files import FILES, read_text
from vigil.subjects import check_part
from vigil.teams import DEFAULT_AGENT, TEAM

log = structlog.get_logger("vigil.identity")

TEMPLATES: Final = Path(__file__).resolve().parents[3] / "prompts" / "en" / "identity"
CHECK_EVERY_S: Final = 2.0
AGENTS_MAX: Final = 1000
"""Agents held in memory; the one loaded longest ago goes first."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The four texts, ready for a prompt."""

    soul: str
    identity: str
    role: str
    user: str


Stamp = tuple[int, int, int]
"""What changes when a file does: mtime in ns, size, inode."""


class _Agent:
    """What is known of one agent's files."""

    def __init__(self) -> None:
        self.checked_at = float("-inf")
        self.stamps: tuple[Stamp | None, ...] = ()
        self.texts: tuple[str, ...] = ()
        self.identities: dict[str, Identity] = {}


class Identities:
    """Reads identity files, and makes the missing ones."""

    def __init__(
        self, folder: Path, clock: Clock | None = None, *, templates: Path = TEMPLATES
    ) -> None:
        self._folder = folder
        self._clock = clock or SystemClock()
        self._templates = templates
        self._agents: dict[str, _Agent] = {}

    def ensure(self, agent: str = DEFAULT_AGENT) -> None:
        """Make the agent's missing files, so that a person finds them before the first word."""
        self._create_missing(self._folder / check_part("agentId", agent))

    def load(self, agent: str, user: str) -> Identity:
        """Return the identity of `agent` for `user`; the first contact makes missing files.

        Raises:
            InvalidInput: `agent` is no name, but a path, say.
        """
        now = self._clock.monotonic()
        known = self._agents.get(agent)
        if known is None:
            known = self._admit(check_part("agentId", agent))
        if now - known.checked_at >= CHECK_EVERY_S:
            known.checked_at = now
            self._check(agent, known)
        identity = known.identities.get(user)
        if identity is None:
            identity = self._identity(known.texts, agent, user)
            if len(known.identities) >= AGENTS_MAX:
                known.identities.clear()
            known.identities[user] = identity
        return identity

    def _admit(self, agent: str) -> _Agent:
        if len(self._agents) >= AGENTS_MAX:
            del self._agents[next(iter(self._agents))]
        self._create_missing(self._folder / agent)
        return self._agents.setdefault(agent, _Agent())

    def _check(self, agent: str, known: _Agent) -> None:
        """Read the files again if one changed."""
        paths = [self._folder / agent / name for name in FILES]
        stamps = tuple(_stamp(path) for path in paths)
        if stamps != known.stamps or not known.texts:
            known.texts = tuple(self._read(path) for path in paths)
            known.stamps = stamps
            known.identities.clear()

    def _identity(self, texts: tuple[str, ...], agent: str, user: str) -> Identity:
        named = [t.replace("{agent}", agent).replace("{user}", user) for t in texts]
        soul, identity, role, person = named
        # A team is no person.
        return Identity(
            soul=soul, identity=identity, role=role, user="" if user == TEAM else person
        )

    def _read(self, path: Path) -> str:
        try:
            return read_text(path)
        except FileNotFoundError:
            return ""  # a person deleted it; only the first contact makes files
        except OSError as error:
            log.warning(
                "an identity file can't be read",
                action="identity.unreadable",
                file=str(path),
                error=str(error),
            )
            return ""

    def _create_missing(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for name in FILES:
                if not os.path.lexists(folder / name):
                    create(folder / name, (self._templates / name).read_bytes())
        except OSError as error:
            log.warning(
                "an identity file can't be made",
                action="identity.not_made",
                folder=str(folder),
                error=str(error),
            )


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
