"""Events: what comes into a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

import msgspec

from .base import VERSION_1, EventType, Instant, Record
from .board import BulletinBasis, Job, KnownFact, MergedSummary, SlotRun, Verdict
from .calls.accepted import AcceptedCall
from .calls.caller import CallerResult, CallerTools
from .costs import RaiseOffer
from .mail import MailedOffers, MailToRead
from .mail.heads import ChatHead, MailHead
from .past.origins import Fork, ImportedPast
from .tools import ServerQuestion


class Envelope(Record, frozen=True, kw_only=True, tag_field="type"):
    """What every event carries. Its `seq` is the stream's, so it's not in the body."""

    id: str
    session_key: str
    created_at: Instant
    caused_by: str | None = None
    v: int = VERSION_1


class Attachment(Record, frozen=True, kw_only=True):
    """An image, a PDF file or a text, by the hash of its bytes, which are in FILES."""

    hash: str
    """SHA-256, in hex."""
    name: str
    type: str
    """Media type, decided by its bytes."""
    size: int
    """In bytes."""
    width: int = 0
    """The width of an image, in pixels."""
    height: int = 0
    pages: int = 0
    """Pages of a PDF file; 0: its structure doesn't tell without being unpacked further."""
    shown_bytes: int = 0
    """Bytes of a text as models are shown it: in UTF-8, behind bars."""

    @property
    def in_words(self) -> str:
        """Return what it is in a line.

        >>> Attachment(hash="0f", name="plan.pdf", type="application/pdf", size=40_200,
        ...            pages=2).in_words
        'plan.pdf, 2 pages, 41 kB'
        """
        return ", ".join((self.name, *self._measures))

    @property
    def unnamed(self) -> str:
        """Return what it is in a line without its name, which anybody may have given it.

        >>> Attachment(hash="0f", name="a.png", type="image/png", size=9_000, width=8,
        ...            height=6).unnamed
        'an image, 8x6 pixels, 9 kB'
        """
        kinds = {"application/pdf": "a PDF file", "text/plain": "a text"}
        kind = kinds.get(self.type, "an image")
        return ", ".join((kind, *self._measures))

    @property
    def _measures(self) -> Iterator[str]:
        if self.pages:
            yield "1 page" if self.pages == 1 else f"{self.pages} pages"
        if self.width:
            yield f"{self.width}x{self.height} pixels"
        yield f"{-(-self.size // 1000)} kB"


class Replaced(Record, frozen=True, kw_only=True):
    """The message that another one takes the place of, and where the history goes on instead."""

    event_id: str
    seq: int
    """Stream sequence of the message that is taken back."""
    turn: int = 0
    """Ordinal of the last turn that stays: the one before that message was taken up."""
    turn_seq: int = 0
    """Stream sequence of that turn; 0: there is none."""
    history_from: int = 0
    """What `history_from` was in the state that this turn left."""
    summary_seq: int = 0
    """What `summary_seq` was in the state that this turn left."""
    follow_ups: tuple[str, ...] = ()
    """Ids of those that were open then: they aren't taken back."""


class RepliedTo(Record, frozen=True, kw_only=True):
    """The message of the agent's that a person's own replies to."""

    id: str
    """The id of the effect that said it."""
    turn_seq: int
    """Stream sequence of the turn that decided it."""
    at: Instant
    quote: str = ""
    """Its beginning; empty: outside content had a part in it, and it is opened as a letter."""


class UserMessagePayload(Record, frozen=True, kw_only=True):
    text: str
    is_keyed: bool = False
    """Whether the id derives from a key the client chose, so that a repeat has the same id."""
    by: str = ""
    """The member of the team who said it; empty: the person whose session it is."""
    channel: str = ""
    """The channel through which it came; empty: a client of the API."""
    attachments: tuple[Attachment, ...] = ()
    """Files of whom said it."""
    replaces: Replaced | None = None
    """What a message takes the place of that was edited, or is to be answered anew."""
    reply_to: RepliedTo | None = None
    """What it replies to, if the person pointed at something."""
    mail: MailHead | None = None
    """What the answer to a mail needs, if the message came as one."""
    chat: ChatHead | None = None
    """Where in a chat network the message came from, if it did."""
    caller: CallerTools | None = None
    """The tools that a program runs itself, if the message came through one."""


class UserMessage(Envelope, frozen=True, kw_only=True, tag="user_message"):
    payload: UserMessagePayload


TimerKind = Literal["follow_up", "deadline"]


class TimerPayload(Record, frozen=True, kw_only=True):
    timer_id: str
    generation: int
    fire_at: Instant
    kind: TimerKind = "follow_up"


class TimerFired(Envelope, frozen=True, kw_only=True, tag="timer"):
    payload: TimerPayload


class ToolResultPayload(Record, frozen=True, kw_only=True):
    call_id: str
    """The id of the effect that asked for the call."""
    content: str
    is_error: bool = False
    is_tainted: bool = False
    """Holds untrusted content: what the loop decides from here on descends from it (SPEC X-3)."""
    attachments: tuple[Attachment, ...] = ()
    """Files that came with it, of whose session it is."""
    fields: tuple[str, ...] = ()
    """Tokens of the whole fields of a structured result (`vigil.words.rule.fields_of`)."""
    steps: int = 0
    """How many model calls a session made that was lent steps."""
    wanted: ServerQuestion | None = None
    """What a server wants of the person first: the call hasn't ended."""


class ToolResultEvent(Envelope, frozen=True, kw_only=True, tag="tool_result"):
    payload: ToolResultPayload


class TickPayload(Record, frozen=True, kw_only=True):
    slot: Instant | None = None
    run: SlotRun | None = None
    """What of the timetable it is; who takes it tells its end."""


class Tick(Envelope, frozen=True, kw_only=True, tag="tick"):
    payload: TickPayload


class ExternalPayload(Record, frozen=True, kw_only=True):
    """What another system told, in the terms of CloudEvents 1.0."""

    source: str
    """Who let it in, stamped by the gateway: ``api:{user}``, ``hook:{name}``, ``channel:{name}``,
    ``bus:{name}``."""
    content: str
    """The data as text: JSON as it came, or what the event's media type says."""
    kind: str = ""
    """The CloudEvents attribute `type`; empty: unknown."""
    origin: str = ""
    """The CloudEvents attribute `source`, as the sender claims it."""
    origin_id: str = ""
    """The sender's own id of the event."""
    occurred_at: Instant | None = None
    is_trusted: bool = False
    """Untrusted, the default: a decision that descends from it is marked tainted (SPEC X-3)."""


class External(Envelope, frozen=True, kw_only=True, tag="external"):
    payload: ExternalPayload


ChildKind = Annotated[str, msgspec.Meta(pattern="^[a-z][a-z_]{0,31}$")]
"""A kind of session that a turn starts (`session_kinds`); it becomes a part of a thread."""


class SessionLimits(Record, frozen=True, kw_only=True):
    """What holds for one session, and may not have for the one before."""

    calls_max: int
    """Model calls for one event."""
    children_max: int
    """Sessions that it may have started at once."""
    tasks_need_approval: bool
    """Whether tasks that it makes wait for the person."""


class Start(Record, frozen=True, kw_only=True):
    """What a session of the cortex begins with: its first event, which makes all the others."""

    prompt: str
    """The thought to think, the task to do; of a job its goal."""
    parent: str = ""
    """The session key of who started it, to be told how it ends; empty: nobody (a job)."""
    call_id: str = ""
    """The parent's effect that started it: what its result answers."""
    parent_turn: int = 0
    """Stream sequence of the parent's turn with that effect; a branch inherits what was before."""
    root_id: str = ""
    """The id of the event that all of it descends from."""
    root: str = ""
    """The thread of the session it descends from, whose budget it shares; empty: the first."""
    depth: int = 0
    allowance: int = 0
    """How many sessions it may start, theirs included."""
    steps: int = 0
    """Model calls that it may make, lent by who started it; 0: as configured for its kind."""
    tokens_max: int = 0
    """The most tokens of each answer of the session's model; 0: as configured for its kind."""
    source: str = ""
    """The source of what the session has memory keep: its parent's; empty: its own kind's."""
    since: Instant | None = None
    """When the cycle before ended; None: it is the first, or no cycle."""
    is_ordered: bool = False
    is_tainted: bool = False
    job: Job | None = None
    task_id: str = ""
    """The task of the board that it works on, which is told how it ends, and nobody else."""
    slot: SlotRun | None = None
    """What of the timetable it runs: the ledger is told how it ends, and who is to know."""
    call: AcceptedCall | None = None
    """The accepted call that an errand runs."""
    row: str = ""
    """The row of the timetable that it all came from, whose budget it has a part in."""
    row_tokens: int = 0
    """What that row may take a day; 0: as configured."""
    goal: str = ""
    """The goal that it all is done for, by its id; empty: none."""
    model: str = ""
    """Who answers, as settings name models; empty: as with others of its kind."""
    limits: SessionLimits | None = None
    """None: as configured for its kind."""
    order: str = ""
    """What of the prompt is the person's order; empty: all of it, unless it is tainted."""
    bulletin: BulletinBasis | None = None
    """What a session makes the text of a bulletin of."""
    summaries: tuple[MergedSummary, ...] = ()
    """The summaries that a session writes anew, one after the other."""
    mails: tuple[MailToRead, ...] = ()
    """The mails that a session reads, of those that came to a mailbox."""
    mails_left: dict[str, int] = msgspec.field(default_factory=dict)
    """How many more mails it isn't shown, for their number; by as whom facts name the senders."""
    offers: MailedOffers | None = None
    """Invitations among what came, about which the person is to be asked."""


class Decision(Record, frozen=True, kw_only=True):
    """A person's verdict on an approval. It holds for the arguments that `digest` stands for."""

    approval_id: str
    verdict: Verdict
    digest: str
    by: str
    """The user who gave it."""
    input: dict[str, Any] | None = None
    """`edit`: the arguments to run instead."""
    text: str = ""
    """`answer`: what to tell the model; `reject`: why."""
    channel: str = ""
    """Over which it came; empty: the API."""
    said_in: str = ""
    """The session in which it was said, if that isn't the one that asked: it was told there that it
    counts."""


class ChildStatus(Record, frozen=True, kw_only=True):
    """What a child is at, told to the session that started it."""

    call_id: str
    state: Literal["running", "asking"]
    text: str = ""
    is_tainted: bool = False
    """Whether untrusted content had a part in the text (SPEC X-3)."""
    until: Instant | None = None
    """When there may be more to tell, if it waits for an instant."""
    approval_id: str = ""
    """The request that the text is, with all of its arguments; empty: it's none, or not whole."""


ControlOp = Literal[
    "stop",
    "clear_follow_ups",
    "cancel_timer",
    "start",
    "cancel",
    "status",
    "approval",
    "fork",
    "past",
    "vouch",
    "unvouch",
    "results",
]
"""`stop` ends the turn that runs, `cancel` the whole of a session that was started. `fork` is the
first event of a conversation that goes on from another one, `past` the order that ends an import.
`vouch` says that a letter is fine, `results` what a program's own tools gave."""


class LetterName(Record, frozen=True, kw_only=True):
    """A letter as its person saw it (`LetterHead`): another text of that name is another one."""

    handle: str
    digest: str


class ControlPayload(Record, frozen=True, kw_only=True):
    op: ControlOp
    timer_id: str | None = None
    reason: str = ""
    start: Start | None = None
    decision: Decision | None = None
    status: ChildStatus | None = None
    fork: Fork | None = None
    past: ImportedPast | None = None
    letter: LetterName | None = None
    results: tuple[CallerResult, ...] = ()


class Control(Envelope, frozen=True, kw_only=True, tag="control"):
    payload: ControlPayload


Urgency = Literal["low", "normal", "high"]
"""`low` waits for the next digest; `high` is said in quiet hours, too, if the person ordered it."""


AGENT_MESSAGE: Final = "message"
"""What is told is for the agent whose home it is, and comes from another agent of the person's."""


class ToldPayload(Record, frozen=True, kw_only=True):
    """What another session has to say to the person (LOOPS L-12), as it is to be said."""

    origin: str
    """The key of that session."""
    text: str
    what: str = ""
    """What it is that has an end, or an alert: ``job``."""
    title: str = ""
    row: str = ""
    """The row of the timetable, if it recurs: the same text of the same row is folded into
    digests."""
    urgency: Urgency = "normal"
    is_ordered: bool = False
    """Whether the person ordered it: exempt from cap and cooldown."""
    is_tainted: bool = False
    channel: str = ""
    """Through which it is said, as the person named it; empty: as other messages unasked."""
    offer: RaiseOffer | None = None
    """What "more" does, said as an answer to it."""
    facts: tuple[KnownFact, ...] = ()
    """What its source says in a closed form: that is shown where the text isn't."""


class ToldEvent(Envelope, frozen=True, kw_only=True, tag="told"):
    payload: ToldPayload


Event = UserMessage | TimerFired | ToolResultEvent | Tick | External | Control | ToldEvent


class Cause(Record, frozen=True, kw_only=True):
    """A pointer to an event in the log."""

    id: str
    seq: int
    type: EventType
