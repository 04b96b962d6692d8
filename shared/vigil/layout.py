"""Where sessions are stored: one log, or several partitions of it side by side. Pure.

All writes and deliveries of a stream wait for each other, and streams don't. So the log of the
sessions may be split: it's the stream ``SESSIONS`` with the subjects ``session.>``, or the streams
``SESSIONS_0`` to ``SESSIONS_3`` with ``session-0.>`` to ``session-3.>``. Which partition a session
is in follows from its key, and never changes.

Only the bus, and what looks after whole streams, knows that: everybody else says ``SESSIONS`` and
``session.vigil.ann.t1.in.said.user``, and is told subjects of that form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar
from zlib import crc32

import msgspec

LOG: Final = "SESSIONS"
ROOT: Final = "session"
UPLOADS_ALL: Final = "upload.*.*.*"
FILES_ALL: Final = "file.*.*.*"
ATTACHED: Final = ("UPLOADS", "FILES")
"""Streams of attachments."""
ATTACHED_INFO: Final = tuple(f"$JS.API.STREAM.INFO.{one}" for one in ATTACHED)
"""Asked for the subjects in them."""
PARTITIONS_MAX: Final = 16
LAYOUT_STREAM: Final = "KV_CONFIG"
"""The stream whose metadata tell in how many partitions the sessions are: every service may ask
for them, only who sets the broker up may change them, and a backup has them."""
_PARTITIONS: Final = "vigil_partitions"
_STREAM: Final = f"{LOG}_"
_SUBJECT: Final = f"{ROOT}-"
_OF_ALL: Final = f"{ROOT}."


class InStream(msgspec.Struct, frozen=True, kw_only=True):
    """What belongs to a stream: a consumer, or what is read from one."""

    stream: str


P = TypeVar("P", bound=InStream)


class LogLayout(msgspec.Struct, frozen=True):
    """In how many partitions the sessions of an installation are; fixed when it's begun.

    >>> LogLayout(4).stored("session.vigil.ann.t1.turn-s")
    'session-0.vigil.ann.t1.turn-s'
    >>> LogLayout(1).stored("session.vigil.ann.t1.turn-s")
    'session.vigil.ann.t1.turn-s'
    """

    partitions: int = 1

    @property
    def logs(self) -> tuple[str, ...]:
        """The streams that hold sessions."""
        return self.streams(LOG)

    def streams(self, name: str) -> tuple[str, ...]:
        """Return the streams that stand behind a name.

        >>> [LogLayout(2).streams(name) for name in ("SESSIONS", "BOARD")]
        [('SESSIONS_0', 'SESSIONS_1'), ('BOARD',)]
        >>> LogLayout(1).streams("SESSIONS")
        ('SESSIONS',)
        """
        if name != LOG or self.partitions == 1:
            return (name,)
        return tuple(f"{_STREAM}{number}" for number in range(self.partitions))

    def each(self, one: P) -> tuple[P, ...]:
        """Return one of these for each stream that stands behind its own."""
        return tuple(msgspec.structs.replace(one, stream=name) for name in self.streams(one.stream))

    def stored(self, subject: str) -> str:
        """Return the subject under which that of one session is stored; others are themselves."""
        if self.partitions == 1 or not is_of_session(subject):
            return subject
        return f"{_SUBJECT}{self._number(subject)}{subject[len(ROOT) :]}"

    def stream_of(self, subject: str) -> str:
        """Return the stream that holds a subject of a session, or of one of the cortex itself.

        >>> [LogLayout(4).stream_of(one) for one in ("session.vigil.ann.t1.in.>", "system.a.b._c")]
        ['SESSIONS_0', 'SYSTEM']
        """
        if not is_of_session(subject):
            return "SYSTEM"
        return LOG if self.partitions == 1 else f"{_STREAM}{self._number(subject)}"

    def locate(self, filters: Sequence[str]) -> tuple[str, list[str]]:
        """Return the stream that holds what filters of one session match, and them as stored.

        >>> LogLayout(4).locate(["session.vigil.ann.t1.>"])
        ('SESSIONS_0', ['session-0.vigil.ann.t1.>'])
        """
        stream = self.stream_of(filters[0])
        return stream, [filter_in(stream, one) for one in filters]

    def _number(self, subject: str) -> int:
        _, agent, user, thread, *_ = subject.split(".", 4)
        if "*" in (agent, user, thread):
            raise ValueError(f"{subject} is in every partition: name the stream")
        return crc32(f"{agent}.{user}.{thread}".encode()) % self.partitions


def is_of_session(subject: str) -> bool:
    """Whether that is a subject of the log of sessions."""
    return subject.startswith(_OF_ALL)


def layout_of(config: Mapping[str, Any]) -> LogLayout:
    """Read the layout from the configuration of `LAYOUT_STREAM`; older versions had one stream.

    >>> layout_of({"metadata": {"vigil_partitions": "4"}}).partitions, layout_of({}).partitions
    (4, 1)
    """
    return LogLayout(int((config.get("metadata") or {}).get(_PARTITIONS, 1)))


def layout_among(streams: Iterable[str], if_none: int) -> LogLayout:
    """Return the layout of the logs among those streams, or one of so many partitions.

    >>> [layout_among(names, 2).partitions for names in (["SESSIONS", "BOARD"], ["BOARD"])]
    [1, 2]
    >>> layout_among(["SESSIONS_0", "SESSIONS_1", "SESSIONS_2"], 2).partitions
    3
    """
    logs = [name for name in streams if name_of(name) == LOG]
    return LogLayout(len(logs) or if_none)


def metadata_of(layout: LogLayout) -> dict[str, str]:
    """Return what `LAYOUT_STREAM` is to tell of a layout."""
    return {_PARTITIONS: str(layout.partitions)}


def filter_in(stream: str, subject: str) -> str:
    """Return a subject of sessions as that stream knows it.

    >>> filter_in("SESSIONS_2", "session.*.*.*.in.>"), filter_in("SESSIONS", "session.*.*.*.in.>")
    ('session-2.*.*.*.in.>', 'session.*.*.*.in.>')
    """
    if not stream.startswith(_STREAM) or not is_of_session(subject):
        return subject
    return f"{_SUBJECT}{stream[len(_STREAM) :]}{subject[len(ROOT) :]}"


def of_all(subject: str) -> str:
    """Return what matches, of every session, what a subject matches of one.

    >>> of_all("session.vigil.ann.t1.in.>")
    'session.*.*.*.in.>'
    """
    kind, _, _, _, rest = subject.split(".", 4)
    return f"{kind}.*.*.*.{rest}"


def named(subject: str) -> str:
    """Return the subject that everybody knows, of one as it is stored.

    >>> named("session-3.vigil.ann.t1.turn-s"), named("session.vigil.ann.t1.turn"), named("board.x")
    ('session.vigil.ann.t1.turn-s', 'session.vigil.ann.t1.turn', 'board.x')
    """
    if not subject.startswith(_SUBJECT):
        return subject
    return ROOT + subject[subject.index(".") :]


def name_of(stream: str) -> str:
    """Return what a stream is called where partitions don't matter.

    >>> name_of("SESSIONS_3"), name_of("SYSTEM"), name_of("KV_CONFIG")
    ('SESSIONS', 'SYSTEM', 'KV_CONFIG')
    """
    return LOG if stream.startswith(_STREAM) else stream


def all_names(name: str) -> tuple[str, ...]:
    """Return every stream that may stand behind a name, in whatever layout.

    >>> all_names("SESSIONS")[:2], all_names("BOARD")
    (('SESSIONS', 'SESSIONS_0'), ('BOARD',))
    """
    return (name, *LogLayout(PARTITIONS_MAX).streams(name)) if name == LOG else (name,)


DELETES: Final = tuple(
    f"$JS.API.STREAM.MSG.DELETE.{one}"
    for name in (LOG, "SYSTEM", "TIMERS", "BOARD", "SIGNALS", "DEAD", *ATTACHED, "KV_IDEMPOTENCY")
    for one in all_names(name)
)
"""What the broker is asked to delete records of conversations, one by one."""
