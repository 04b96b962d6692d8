"""The few kinds of failure, drawn once.

    VigilError
    ├── InvalidInput        the caller's fault: names field and reason; never retried
    ├── NotFound            it isn't there, or isn't the asker's; never retried
    ├── NotReady            it isn't there, or not yet
    ├── AlreadyExists       there is something of that name
    ├── ConfigError         refuse to start
    ├── Unavailable         the broker or a service can't be reached; try again later
    │   └── OutcomeUnknown  a publish was sent and not answered: read back before repeating
    ├── WrongLastSequence   a compare-and-set lost: read what won
    └── LeaseLost           somebody else may hold the session: stop, touch nothing

Whoever raises picks the kind; whoever handles maps the kind to ack, nak or dead letter.
"""

from __future__ import annotations


class VigilError(Exception):
    """Base of every error that Vigil raises on purpose."""


class InvalidInput(VigilError):
    """Input that can't be accepted, with the field and the reason for a person to read."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class NotFound(VigilError):
    """What was asked for isn't there, or isn't the asker's. Asking again won't help."""


class NotReady(VigilError):
    """What was asked for isn't there, or not yet."""


class AlreadyExists(VigilError):
    """There is something of that name already."""


class ConfigError(VigilError):
    """The configuration is wrong; the process refuses to start."""


class Unavailable(VigilError):
    """The broker or a service can't be reached now; the caller may retry later."""


class OutcomeUnknown(Unavailable):
    """A publish was sent and its answer never came: it may or may not be stored.

    The caller reads back and compares ids before it repeats the publish.
    """


class WrongLastSequence(VigilError):
    """A compare-and-set was refused (JetStream error 10071): another write came first.

    `last` is the sequence of that write; 0: none, or it wasn't told.
    """

    def __init__(self, text: str, last: int = 0) -> None:
        super().__init__(text)
        self.last = last


class LeaseLost(VigilError):
    """The lease of a session was lost; whoever held it stops at once."""
