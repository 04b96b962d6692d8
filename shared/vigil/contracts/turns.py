"""State and turns: what a session knows, and the one message that commits a step of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from .base import VERSION_2, EventType, Instant, Record
from .board import Approval, Job, LookedGoal, Settled, SlotRun
from .calls.awaited import Waiting
from .calls.caller import CallerTools
from .costs import RaiseOffer
from .effects import Effect
from .events import Attachment, Cause, ChildKind, LetterName, Start
from .history import FollowUp, LetterHead, Row, TakenBack
from .made import Made
from .past.origins import Fork, ImportedPast
from .tools import AskedOfModel
from .vocabulary import Outcome

if TYPE_CHECKING:

    class Taint:
        """A mark of untrusted content that is only a part of the answer: nobody may test it but
        the module that knows the rest (the cortex's `core.sway`). So the type checker takes it for
        no bool; in a record it is one."""

        def __init__(self, value: bool = False) -> None: ...

else:
    Taint = bool


class Counters(Record, frozen=True, kw_only=True):
    """The autonomy counters that the gates read (SPEC S-7). Instants are epoch ms."""

    consecutive: int = 0
    last_autonomous_ms: int | None = None
    ordered_ms: tuple[int, ...] = ()
    """When the sends that the person ordered in the last hour were decided."""
    asked: int = 0
    """Exchanges in a row that the agent's own follow-ups began, and nobody heard of."""


class Retry(Record, frozen=True, kw_only=True):
    """A model call that failed and waits for its deadline."""

    attempt: int
    generation: int
    due_at: Instant
    reason: str


class Task(Record, frozen=True, kw_only=True):
    """A call or a child whose end comes as an event of its own, or to the loop that awaits it."""

    tool: str
    title: str
    """What it's for, in a line."""
    due_at: Instant
    """When it counts as lost, unless it tells something before."""
    generation: int
    """The generation of the deadline that ends it."""
    kind: ChildKind = "call"
    """``call``, or of the session that it is."""
    child: str = ""
    """The child's session key, if it is one."""
    is_awaited: bool = False
    """Whether the open loop waits for it."""
    is_ordered: bool = False
    """Whether the person ordered it: its result is said like a reminder that is kept."""
    is_tainted: bool = False
    caused_by: str = ""
    root_id: str = ""
    """The id of the event that all of it descends from."""
    spawned: int = 0
    """Sessions that descend from that event so far, of all that this session knows of."""
    lent: int = 0
    """Model calls that it was lent by this session; 0: it has its own."""
    asked: AskedOfModel | None = None
    """What an MCP server wants, of a session that answers it."""
    is_late: bool = False
    """Whether nobody decided a request in time, whatever the event says that ended it."""
    told_seq: int = 0
    """Stream sequence of the event that ended it, while that waits in the queue, or while the loop
    that it opened is open. 0: it is under way."""


class Loop(Record, frozen=True, kw_only=True):
    """An exchange in the making: one event, up to N model calls, what was said so far."""

    cause: Cause
    fence: int
    begun_at: Instant
    is_direct: bool
    """Whether a user message began it."""
    is_ordered: bool = False
    """Whether the person ordered it (a kept reminder): exempt from cap and cooldown."""
    tag: str | None = None
    calls: int = 0
    sends: int = 0
    requests: int = 0
    """How many of the sends asked the person for leave."""
    unsaid: str = ""
    """Text that came with a tool call, or with a promise: said at the end if nothing else is."""
    has_acted: bool = False
    """Whether a call of it did more than look something up: it may keep what is promised then."""
    promise: str = ""
    """What its answer promised, or told as done, and nothing did, once it was asked about that."""
    retries: int = 0
    """Failed attempts at the present step."""
    malformed: int = 0
    """Answers in a row whose calls of tools could not be read, not one of them."""
    retry: Retry | None = None
    is_stopped: bool = False
    """Whether a budget, or a circuit, stopped it since the model answered, as its person knows."""
    timer_id: str | None = None
    """The timer that began it, if one did, and what it stood for."""
    follow_up: FollowUp | None = None
    taint: Taint = msgspec.field(default=Taint(), name="is_tainted")
    """Whether untrusted content, or a plan made of it, began it, or came with a result."""
    joined: tuple[str, ...] = ()
    """Ids of the messages that it answers together with the one that began it (`coalesce`)."""
    waiting: Waiting | None = None
    """Set while services run tools for it; no model call is owed then."""
    purpose: str = "answer"
    """Who thinks in it: `answer` the session's own kind, another the profile of the cortex that has
    that purpose (`save`: what of the conversation to remember; `plan`: the steps of a job)."""
    spawned: int = 0
    """Sessions that it started, with all that those may start."""
    lent: int = 0
    """Model calls that it lent to sessions that it started, but for those that came back unused."""
    next_s: int = 0
    """After how long a run of the timetable wants the next; 0: it said nothing."""
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    """The facts that a run of the timetable told, as they fit."""
    task_id: str = ""
    """The task whose result began it; it stays in the state's `tasks` until the loop ends."""
    begun_turn: int = 0
    """Ordinal of the turn that began it; 0: an older version did, and all its thread is open."""
    open_from: int = 0
    """Ordinal of the first turn that it is shown as it is; before, letters are closed (FLOW F1)."""
    files_from: int = 0
    """The turn from which files are shown while the person goes on, as `open_from` of letters."""
    opened: tuple[str, ...] = ()
    """Handles of the letters that it opened."""
    replies: tuple[int, ...] = ()
    """Places of the turns whose letters are open to it: the person replied to them."""
    words: tuple[str, ...] = ()
    """What the person said in the messages that it answers (FLOW F-5)."""
    fields: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """MCP server -> tokens of the whole fields of structured results that it gave in this loop."""
    attached: tuple[Attachment, ...] = ()
    """Files that go with what it says next."""
    caller: CallerTools | None = None
    """Tools that the program brought along through which the message came."""
    caller_taint: Taint = msgspec.field(default=Taint(), name="is_swayed_by_caller")
    """Whether those gave results: of untrusted content that came by nothing else `taint` tells."""


class Queued(Record, frozen=True, kw_only=True, array_like=True):
    """An event folded while a loop was open, waiting for its turn to be answered."""

    seq: int
    type: EventType


class RecentExchange(Record, frozen=True, kw_only=True):
    """The newest exchange of a session that outside content had a part in."""

    begun_turn: int
    """Ordinal of the turn that began it."""
    files_from: int
    """The turn that began the first of the exchanges that went on from one another."""
    ended_at: Instant


class Gathering(Record, frozen=True, kw_only=True):
    """User messages that wait in the queue for more of them (`coalesce`, SPEC S-13)."""

    generation: int
    """The generation of the deadline that ends it."""
    due_at: Instant
    """When they are answered, if no further one comes."""
    latest_at: Instant
    """When they are answered, whatever comes."""


class Pause(Record, frozen=True, kw_only=True):
    """A conversation that is to be looked at for what to remember, once it pauses (SPEC M)."""

    generation: int
    """The generation of the deadline that comes first."""
    due_at: Instant
    """When it counts as paused, if nothing more is said."""


class Unsaid(Record, frozen=True, kw_only=True):
    """What other sessions told at a bad time, or again: it's in the next digest (LOOPS L-13)."""

    text: str
    """Cut to what a digest holds of it."""
    told_at: Instant
    """The last time."""
    count: int = 1
    """How often it was told since it was last spoken of."""
    is_known: bool = False
    """Whether the person was told before; if it doesn't come again, the digest says so."""
    recurs: bool = False
    is_tainted: bool = False


class Digest(Record, frozen=True, kw_only=True):
    """What is said together, later."""

    generation: int
    """The generation of its deadline."""
    due_at: Instant
    entries: dict[str, Unsaid]
    """By what makes two the same."""
    left_out: int = 0
    """How many more there were."""


class MindState(Record, frozen=True, kw_only=True):
    """Of a mind: what it looks at, and when it may look again."""

    looked_at: Instant | None = None
    """When the newest look began."""
    wait_until: Instant | None = None
    """It doesn't look before: of a budget that had no room."""
    failures: int = 0
    """Looks that failed, one after the other."""
    chain: int = 0
    """Looks since the last one at anything but results of its own calls."""
    ticked_at: Instant | None = None
    """The newest slot of the timetable that came in."""
    taken: tuple[Queued, ...] = ()
    """What the open look is at."""
    goals: tuple[str, ...] = ()
    """Goals that are due, which the open look is at."""
    looked: dict[str, LookedGoal] = msgspec.field(default_factory=dict)
    """Goals that it looked at last, by their ids."""
    slots: tuple[SlotRun, ...] = ()
    """The runs of the timetable whose end is told with that of the open look."""


class State(Record, frozen=True, kw_only=True):
    """The small state of a session, carried whole by every turn."""

    position: int = 0
    """Stream sequence of the last event folded."""
    turns: int = 0
    """Ordinal of the last turn."""
    effects: int = 0
    """How many effects the session has decided in its life."""
    attempt: int = 0
    """How often the next step was taken over after a crash (ARCHITECTURE 3)."""
    fence: int = 0
    """Stream sequence of the last user message folded."""
    channel: str = ""
    """Through which the person's newest message came; empty: a client of the API."""
    channels: tuple[str, ...] = ()
    """Through which they ever wrote here, the newest first, to be tried in turn. At most 8."""
    last_send: str | None = None
    counters: Counters = Counters()
    follow_ups: dict[str, FollowUp] = msgspec.field(default_factory=dict)
    loop: Loop | None = None
    queue: tuple[Queued, ...] = ()
    history_from: int = 0
    """Stream sequence of the oldest turn whose rows are still part of the history."""
    exchange: RecentExchange | None = None
    """The newest exchange, if it holds letters: what goes on from it is shown them."""
    gathering: Gathering | None = None
    """Set while the queue's user messages wait for more; no loop is open then."""
    keyed: tuple[str, ...] = ()
    """Ids of the newest keyed user messages: the lasting truth about repeats."""
    told: tuple[str, ...] = ()
    """Ids of the newest events from outside, for the same: no sender has a person's forgotten."""
    pause: Pause | None = None
    """Set while something was said that memory was not offered yet."""
    unsaved_from: int = 0
    """Turns from this stream sequence on hold rows that memory was not offered yet; 0: none."""
    is_offered: bool = False
    """Whether memory is offered what is said since the session began; if not (an older version, or
    without pauses), the first pause offers the history, too."""
    summary_seq: int = 0
    """Stream sequence of the turn whose `summary` stands for what was before `history_from`."""
    is_locked: bool = False
    """The state could not be read once: autonomous sends are refused until a user message."""
    unheard: tuple[str, ...] = ()
    """Ids of the sends since the last user message that the next one may void."""
    start: Start | None = None
    """What a session was started for, and by whom."""
    fork: Fork | None = None
    """The conversation that this one was forked from, and where."""
    past: ImportedPast | None = None
    """The conversation that was imported as this one's past."""
    taken_back: tuple[TakenBack, ...] = ()
    """What the person took back here by saying something else in its place, the oldest first."""
    told_ms: int = 0
    """When it last told its parent how it goes, in epoch ms."""
    tasks: dict[str, Task] = msgspec.field(default_factory=dict)
    """What is under way for this session, by the effect's id."""
    approvals: dict[str, Approval] = msgspec.field(default_factory=dict)
    """The open requests to the person, by id."""
    settled: tuple[Settled, ...] = ()
    """What became of the newest requests, and which verdicts in words are on their way."""
    found: tuple[str, ...] = ()
    """Tools that the model found, and is shown since, the newest last. At most 16."""
    shown: tuple[str, ...] = ()
    """Ids of the newest requests of which the person was told all arguments: a word accepts one."""
    vouched: tuple[LetterName, ...] = ()
    """The newest letters here that the person vouched for."""
    job: Job | None = None
    digest: Digest | None = None
    mind: MindState = MindState()
    offer: RaiseOffer | None = None
    """What the newest notice of their limit offered that the person was told here."""
    taint: Taint = msgspec.field(default=Taint(), name="is_swayed")
    """Whether untrusted content ever stood in what a model may be shown here. It stays, whatever
    becomes of the rows, and sways loops of older versions alone: others see it closed."""
    fallback_until: Instant | None = None
    """Till then the fallback answers; it stays until the session's own model, which failed, has."""


class Usage(Record, frozen=True, kw_only=True):
    """What model calls took, in tokens."""

    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    tier: str = ""
    """The tier that was asked, `main` or `cheap`; empty: it cost nothing, or an older record."""
    tier_reason: str = ""
    """What decided on it: a kind of session, or a phase such as `save`."""
    micro_usd: int | None = None
    """Millionths of a dollar by the price of its day; None: no price, or an older version asked."""
    shown: dict[str, int] = msgspec.field(default_factory=dict)
    """Tokens of each part that the model was shown, by estimate, in their order."""

    @property
    def tokens(self) -> int:
        """All of them: what was read from a cache counts, too."""
        return sum(
            (self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens)
        )


class Note(Record, frozen=True, kw_only=True):
    """A remark for whoever asks why: a stable code, and a sentence."""

    code: str
    text: str
    subject: str | None = None
    """The timer, effect or event it is about."""


class Turn(Record, frozen=True, kw_only=True):
    """One atomic commit: the position, the whole small state, new rows, effects, notes."""

    id: str
    session_key: str
    ordinal: int
    event: Cause | None
    """The event that it folds, or the one whose loop it continues."""
    outcome: Outcome
    state: State
    created_at: Instant
    rows: tuple[Row, ...] = ()
    effects: tuple[Effect, ...] = ()
    notes: tuple[Note, ...] = ()
    usage: tuple[Usage, ...] = ()
    ended: tuple[str, ...] = ()
    """Ids of the events whose exchange is over with this turn."""
    unsaid: tuple[str, ...] = ()
    """Ids of earlier sends that the person spoke before: no part of the history from here on."""
    summary: str = ""
    """What stands for all rows before `state.history_from`, from this turn on."""
    is_summary_tainted: bool = False
    """Whether the summary was made of untrusted content, too (SPEC X-3)."""
    is_tainted: bool = False
    """Whether its rows are of a tainted loop that it ended; if it goes on, its state tells."""
    is_swayed: bool = False
    """Whether a model was asked for it that was shown untrusted content, which it may hand on."""
    letters: tuple[LetterHead, ...] = ()
    """What of its rows later loops see closed. For people: nothing is decided by it."""
    made: Made | None = None
    """What it was decided from, beside the state and the event; None: an older version made it."""
    v: int = VERSION_2


# Headers of a turn: they let others skip it, or find its position, without reading it.
POSITION_HEADER: Final = "Vigil-Position"
ORDINAL_HEADER: Final = "Vigil-Turn"
OWES_HEADER: Final = "Vigil-Owes"
"""Present if the session has something to do by itself; its wake isn't acked before."""
