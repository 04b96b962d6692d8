"""What a conversation goes on from: another one, or an imported one."""

from __future__ import annotations

from ..base import Record


class Fork(Record, frozen=True, kw_only=True):
    """Where a conversation was forked: it begins with what another one knew, and nothing else."""

    session: str
    """The session key of that conversation, of the same person and agent."""
    turn: int
    """Stream sequence of its last turn whose history is carried along."""


class ImportedPast(Record, frozen=True, kw_only=True):
    """What of an imported conversation the agent knows: it begins with that, and nothing else."""

    origin: str
    """Whose form it was in: ``vigil``, ``hermes``, ``openclaw``."""
    first: int
    """Stream sequence of the first message that the history begins with."""
    last: int
    """Stream sequence of the last message that was imported."""
    count: int
    """Messages in all, also those before the first."""
