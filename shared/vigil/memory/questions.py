"""What the memory service is asked, what it answers, and who asks it (SPEC M). Pure.

Questions are NATS requests to ``rpc.memory.{op}.{agent}.{owner}`` (:class:`vigil.subjects.Scope`),
so whose memory it is stands in the subject and never in what a person or a model wrote. One replica
answers each, but those of `EVERY_REPLICA`. An error comes in the headers of the micro-service API
(``Nats-Service-Error-Code``, as of HTTP) with a :class:`Refused` as the body.

Here is what the operations (`vigil.memory.operations`) have in common, and what is asked of the
service as a whole.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from ..contracts import Instant, Memory, MemoryType

SERVICE: Final = "memory"
CONTENT_BYTES_MAX: Final = 16 * 1024
"""Of one memory, in UTF-8. More is a document, not a memory: some 4,000 tokens of a prompt."""
ANSWER_BYTES_MAX: Final = 768 * 1024
"""Of one answer; what doesn't fit is left out, and counted. The broker takes 1 MiB."""
LIMIT_MAX: Final = 200
IDS_MAX: Final = 1000
UNDONE_SHOWN_MAX: Final = 10_000
"""Ids of either kind in the answer to an undo; the others are counted."""
DEGRADED_VECTORS: Final = "vectors"
"""In `degraded`: the vector index did not answer, and text alone was searched."""
DEGRADED_NEWEST: Final = "newest"
"""In `degraded`: what was saved last isn't in the database yet, since its disk is full, say."""
NOT_ASKED: Final = {DEGRADED_VECTORS: "vectors", DEGRADED_NEWEST: "what was saved last"}
"""What could not be searched, in words, by what is in `degraded`."""


def described(text: str) -> msgspec.Meta:
    """Return what a field says of itself, in every schema that it is part of."""
    return msgspec.Meta(description=text)


Unit = Annotated[float, msgspec.Meta(ge=0, le=1)]
Name = Annotated[str, msgspec.Meta(max_length=200)]
Id = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
Ids = Annotated[tuple[Id, ...], msgspec.Meta(min_length=1, max_length=IDS_MAX)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX)]
Content = Annotated[str, msgspec.Meta(min_length=1, max_length=CONTENT_BYTES_MAX)]
Named = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
FewWords = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
"""What a model or a program looks for; our own services look for whole messages."""
Few = Annotated[int, msgspec.Meta(ge=1, le=50)]
Mode = Literal["hybrid", "text", "vector"]
Sort = Literal["recent", "importance", "accessed"]
Ended = Literal["forgotten", "expired", "decayed", "merged", "replaced", "undone"]


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what is asked."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what is answered."""


class Refused(Reply, frozen=True, kw_only=True):
    """Why a question was refused. `status` is as of HTTP: 404, 409, 422, 503."""

    status: int
    reason: str
    field: str = ""


# ---------------------------------------------------------------- what is found


class Filters(Question, frozen=True, kw_only=True):
    """What both recall and list can be narrowed to; applied inside the indexes."""

    source: Annotated[
        Name,
        described("Only what came from this source; `job:` means all that begin so."),
    ] = ""

    @property
    def is_kind_of_source(self) -> bool:
        """Whether `source` stands for all that begin with it: ``job:``."""
        return self.source.endswith(":")

    types: Annotated[
        tuple[MemoryType, ...],
        described("Only memories of these types. Leave it out for all."),
    ] = ()
    since: Annotated[Instant | None, described("Only what happened then or later (RFC 3339).")] = (
        None
    )
    until: Annotated[Instant | None, described("Only what happened then or before (RFC 3339).")] = (
        None
    )
    """By when it occurred (saved, if that isn't known); both ends included."""
    importance_min: Annotated[Unit, described("Only what is at least so important.")] = 0.0
    """Of the importance after decay (SPEC M-7)."""
    as_of: Annotated[Instant | None, described("What was known at that moment (RFC 3339).")] = None
    """Memories saved by then that stood then. What somebody asked to forget is in no answer."""
    thread: Annotated[Name, described("Only this conversation.")] = ""


class MemoryView(Memory, frozen=True, kw_only=True):
    """A memory with what became of it. `importance` is as saved."""

    seq: int
    """Of MEMORIES: the record that saved it."""
    decayed: float
    """Its importance now (SPEC M-7)."""
    accessed_at: Instant | None = None
    accesses: int = 0
    centrality: float = 0.0
    """The sum of the weights of its associations with what stands; 0 once it has ended."""
    ended_at: Instant | None = None
    """When it ceased to stand; None: it stands."""
    ended: Ended | None = None
    superseded_by: str | None = None
    also_from: tuple[str, ...] = ()
    """Sources of those that say the same, which it stands for."""


class Parts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why it was found: what each part gave to the score, after its weight."""

    text: float = 0.0
    vector: float = 0.0
    words: float = 0.0
    """Question words whose nearest word stands in it."""
    gist: float = 0.0
    """Likeness of the rare words of both, taken together."""
    speaker: float = 0.0
    """It was said by somebody whom the question names; or that one's cousin, say, is asked about,
    and the cousin's name leads to it."""
    date: float = 0.0
    """It happened on a day that the question names."""
    question: float = 0.0
    """Negative: what it lost for being a question itself."""
    brief: float = 0.0
    """Negative: what it lost for saying little."""
    repeat: float = 0.0
    """Negative: what it lost because a better one says the very same."""
    neighbours: float = 0.0
    thread: float = 0.0
    """The best that is said in its conversation."""
    names: float = 0.0
    """It has a name that the best memories have, and the question hasn't."""
    alike: float = 0.0
    """It says something like the best memories; of questions for several things alone."""
    graph: float = 0.0
    recency: float = 0.0
    importance: float = 0.0
    taint: float = 0.0
    """Negative: what it lost for descending from untrusted content."""


class Hit(Reply, frozen=True, kw_only=True):
    memory: MemoryView
    score: float
    parts: Parts
    text: str = ""
    """What is given of it, if there is a bound of tokens (`Recall.tokens`)."""
    times: int = 1
    """How many say the same, itself included."""


# ---------------------------------------------------------------- of the whole service


class Rebuilding(Reply, frozen=True, kw_only=True):
    """How far a rebuild of a replica's index is."""

    what: Literal["all", "vectors"]
    done: int
    total: int
    """Records of MEMORIES, or memories to embed."""


class Rebuild(Question, frozen=True, kw_only=True):
    """Make SQLite and the vectors anew from the log; returns at once."""

    what: Literal["all", "vectors"] = "all"


class Erased(Reply, frozen=True, kw_only=True):
    """Whether a replica holds nothing any more of a person whose records are gone from the log."""

    instance: str
    is_done: bool
    """It found nothing. Else it is at it: ask again."""
    left: str = ""
    """What it is at."""


EVERY_REPLICA: Final = ("rebuild", "erase")
"""Questions that each replica answers: ``rpc.memory.rebuild``, ``rpc.memory.erase.{hash}``."""
MAINTAIN_ALL: Final = "rpc.memory.maintain"
"""One replica runs the pass over every scope: asked by the scheduler's ticks and by admins."""
REBUILD: Final = "rpc.memory.rebuild"
ERASE: Final = "rpc.memory.erase"
"""With the hash of a name behind it (:func:`vigil.marks.erasure.hash_of`); no body."""
