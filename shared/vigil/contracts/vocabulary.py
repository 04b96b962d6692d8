"""The words of the log: how turns, messages, requests and jobs end, and what each means. Pure.

Nobody else has a list: signals, `why`, the command line and the pages of docs/reference read it
here; :mod:`.notes` has those of notes. A new word is a row, and its name in the `Literal` above.

Sentences are templates: `{They}` and `{they}` name the person, `{Who}` whoever decided, `{tool}`
and the like are fields of what the sentence is about, and `:at` writes an instant.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from .base import EventType

# ---------------------------------------------------------------- how a story ends

Ending = Literal[
    "said",
    "sent",
    "delivered",
    "void",
    "blocked",
    "held",
    "dropped",
    "failed",
    "ambiguous",
    "retrying",
    "pending",
    "silent",
    "stopped",
    "cancelled",
    "replaced",
    "ignored",
    "accepted",
    "rejected",
    "answered",
    "expired",
    "done",
    "unknown",
]
"""The verdict of `why`, in one word."""


class EndingWords(NamedTuple):
    meaning: str
    start: str = "It ended"
    """How the last sentence of a story begins, before the reason."""
    mood: Literal["good", "bad", "open"] = "open"


_UNSAID: Final = "It was not said"


class NoteWords(NamedTuple):
    meaning: str
    sentence: str
    """The sentence of a step, with `{text}` for the note's text and `{about}` for its subject."""
    ending: Ending | None = None
    """What it means for a story that ends with it; None: it ends none."""
    last: str = ""
    """The last sentence of such a story; empty: as its ending begins, and the text."""
    signal: tuple[str, str] | None = None
    """The kind of its signal, and how that begins, if it gives one of its own."""


ENDINGS: Final[dict[Ending, EndingWords]] = {
    "said": EndingWords("it is in the transcript", mood="good"),
    "sent": EndingWords("and the channel took it", mood="good"),
    "delivered": EndingWords("and the channel delivered it", mood="good"),
    "void": EndingWords("the person spoke first", _UNSAID, "bad"),
    "blocked": EndingWords("the gates refused it", _UNSAID, "bad"),
    "held": EndingWords("quiet hours, a pause or the cooldown put it off", "It was held back"),
    "dropped": EndingWords("it was no longer wanted, or there was no room", _UNSAID, "bad"),
    "failed": EndingWords(
        "given up: the model, the broker or the channel failed for good", _UNSAID, "bad"
    ),
    "ambiguous": EndingWords(
        "the channel may have it, and it isn't sent again by itself", mood="bad"
    ),
    "retrying": EndingWords("it failed for now; it's tried again", "It isn't said yet"),
    "pending": EndingWords("it isn't over yet"),
    "silent": EndingWords("there was nothing to say", "Nothing was said"),
    "stopped": EndingWords("a person stopped it, or wrote again", _UNSAID),
    "cancelled": EndingWords("a person or the agent ended it", "It was cancelled"),
    "replaced": EndingWords("a later plan of the same name took its place"),
    "ignored": EndingWords("there was nothing to do about it", "Nothing was done about it"),
    "accepted": EndingWords("the person accepted the request"),
    "rejected": EndingWords("the person rejected the request"),
    "answered": EndingWords("the person answered the request"),
    "expired": EndingWords("nobody decided on the request in time"),
    "done": EndingWords("it was processed, and that was all", mood="good"),
    "unknown": EndingWords("what decided it isn't in the log any more"),
}

# ---------------------------------------------------------------- turns

Outcome = Literal[
    "answered",
    "silent",
    "continued",
    "queued",
    "begun",
    "waiting",
    "blocked",
    "held",
    "stopped",
    "cancelled",
    "decided",
    "failed",
    "ignored",
    "cleared",
    "taken_over",
    "saved",
    "compacted",
    "forked",
    "imported",
]
"""What a turn was."""


class OutcomeWords(NamedTuple):
    meaning: str
    signal: str
    """What its signal says of the turn: "Turn 3 …"."""
    step: str
    """How `why` says it, with the turn's number after it."""
    ending: Ending
    """What it means for a story that ends with it, and in a sentence, if no note says more."""
    summary: str
    is_open: bool = False
    """Whether something is still to be done about its event."""


OUTCOMES: Final[dict[Outcome, OutcomeWords]] = {
    "answered": OutcomeWords(
        "the loop ended, and something may have been said",
        "ended with an answer",
        "The agent decided",
        "done",
        "It was processed, and nothing was left to say.",
    ),
    "silent": OutcomeWords(
        "the loop ended with nothing to say",
        "had nothing to say",
        "The agent decided to say nothing",
        "silent",
        "Nothing was said: there was nothing to say.",
    ),
    "continued": OutcomeWords(
        "the model asked for tools, or a result came: the loop goes on",
        "used tools and goes on",
        "The agent took a step",
        "pending",
        "It isn't over yet: the agent goes on.",
        is_open=True,
    ),
    "queued": OutcomeWords(
        "an event waits, for the open loop or for more messages; it is in the state",
        "noted what came in, to be taken up later",
        "It had to wait",
        "pending",
        "It waits for what the agent is busy with.",
        is_open=True,
    ),
    "begun": OutcomeWords(
        "a loop's opening, committed because something else came in; or the end of a wait for more",
        "began to think",
        "The agent took it up",
        "pending",
        "It isn't over yet: the agent is working on it.",
        is_open=True,
    ),
    "waiting": OutcomeWords(
        "the model failed for now; a deadline tries again",
        "waits to ask the model again",
        "The agent got no answer from the model, and waits",
        "retrying",
        "It isn't said yet: the model is asked again.",
        is_open=True,
    ),
    "blocked": OutcomeWords(
        "the gates refused what was to be said; it is dropped",
        "was refused by the gates",
        "The agent may not say it",
        "blocked",
        "It was not said: the gates refused it.",
    ),
    "held": OutcomeWords(
        "quiet hours, a pause, or the cooldown after those, delay a follow-up or an outside event",
        "put a message off",
        "It was held back",
        "held",
        "It was held back.",
    ),
    "stopped": OutcomeWords(
        "a person stopped the loop",
        "was stopped",
        "The agent stopped",
        "stopped",
        "It was not said: the turn was stopped.",
    ),
    "cancelled": OutcomeWords(
        "whoever started this session ended it, or it took too long",
        "was cancelled",
        "The session was ended",
        "cancelled",
        "It was ended before it was done.",
    ),
    "decided": OutcomeWords(
        "a person decided on a request, or it expired",
        "took in a person's verdict",
        "The agent took note of how a request ended",
        "done",
        "The agent took note of it.",
    ),
    "failed": OutcomeWords(
        "given up: a dead letter, an apology, or the model's failure reported",
        "was given up",
        "The agent gave up",
        "failed",
        "It was given up.",
    ),
    "ignored": OutcomeWords(
        "nothing to answer: a repeat, a stale timer, a late result, or nothing to stop",
        "had nothing to do",
        "There was nothing to do",
        "ignored",
        "Nothing was done about it.",
    ),
    "cleared": OutcomeWords(
        "a control event closed follow-ups",
        "closed follow-ups",
        "The list of follow-ups changed",
        "done",
        "It was done.",
    ),
    "taken_over": OutcomeWords(
        "another attempt at the next step, after a crash",
        "is tried again after a crash",
        "Another process took the step over",
        "pending",
        "It isn't over yet: another process took it over.",
        is_open=True,
    ),
    "saved": OutcomeWords(
        "a pause: what to remember was decided",
        "decided what to remember",
        "The conversation paused, and the agent looked back",
        "done",
        "The conversation had paused, and what matters was handed to memory.",
    ),
    "compacted": OutcomeWords(
        "the oldest rows were replaced by a summary, or dropped",
        "made room for what is to come",
        "The conversation grew too long, and room was made",
        "pending",
        "It isn't over yet: room was made for the answer first.",
    ),
    "forked": OutcomeWords(
        "the conversation began as a fork of another",
        "began as a fork of another conversation",
        "The conversation began as a fork",
        "done",
        "The conversation goes on from the other one.",
    ),
    "imported": OutcomeWords(
        "the conversation was imported, and begins with what was said elsewhere",
        "began with what was imported",
        "The conversation was imported",
        "done",
        "It was imported, and nothing was done about it here.",
    ),
}

EVENTS: Final[dict[EventType, str]] = {
    "user_message": "a message of the person",
    "timer": "a timer",
    "tool_result": "a tool's result",
    "tick": "a tick",
    "external": "an outside event",
    "control": "an order",
    "told": "what another session reported",
}
"""Type of an event -> what it is, after "because of"."""

# ---------------------------------------------------------------- messages

ReceiptOutcome = Literal["said", "sent", "delivered", "failed", "dropped", "ambiguous", "void"]


class ReceiptWords(NamedTuple):
    step: str
    signal: str = ""
    """The kind of its signal, and how that begins; `said` gives none: the claim tells it."""
    signal_text: str = ""


RECEIPTS: Final[dict[ReceiptOutcome, ReceiptWords]] = {
    "said": ReceiptWords("It was said"),
    "sent": ReceiptWords("The channel took it", "message.delivered", "A channel took the message"),
    "delivered": ReceiptWords(
        "The channel delivered it", "message.delivered", "A channel took the message"
    ),
    "failed": ReceiptWords("It failed", "message.failed", "The message was given up"),
    "dropped": ReceiptWords("It was dropped", "message.dropped", "The message was not said"),
    "ambiguous": ReceiptWords(
        "Nobody knows whether it arrived, and it is not sent again",
        "message.ambiguous",
        "Nobody knows whether the message arrived",
    ),
    "void": ReceiptWords("It was not said", "message.dropped", "The message was not said"),
}

# ---------------------------------------------------------------- requests to a person, and jobs

ApprovalState = Literal[
    "open", "accepted", "edited", "answered", "rejected", "expired", "superseded", "closed"
]
"""`superseded`: what the person wrote made it needless; `closed`: what asked for it was ended
otherwise."""


class ApprovalWords(NamedTuple):
    signal: str
    step: str
    ending: Ending
    summary: str
    """With `{Who}` for whoever decided."""


APPROVALS: Final[dict[ApprovalState, ApprovalWords]] = {
    "open": ApprovalWords(
        "asks for approval",
        "It asks {they} for approval to run {tool} ({risk}: {reason})",
        "pending",
        "It waits for {they} to decide on {tool}, until {expires_at:at}.",
    ),
    "accepted": ApprovalWords(
        "was accepted",
        "{They} had accepted {tool}, so it may run",
        "accepted",
        "{Who} accepted it, and the call went out.",
    ),
    "edited": ApprovalWords(
        "was accepted with other arguments",
        "{They} had accepted {tool} with other arguments, so it may run with those",
        "accepted",
        "{Who} accepted it with other arguments, and the call went out.",
    ),
    "answered": ApprovalWords(
        "was answered",
        "{They} had answered in place of {tool}",
        "answered",
        "{Who} answered it.",
    ),
    "rejected": ApprovalWords(
        "was rejected",
        "{They} had rejected {tool}, so it doesn't run",
        "rejected",
        "{Who} rejected it, and nothing was run.",
    ),
    "expired": ApprovalWords(
        "expired: nobody decided in time",
        "Nobody decided on {tool} in time, so it doesn't run",
        "expired",
        "Nobody decided in time, and nothing was run.",
    ),
    "superseded": ApprovalWords(
        "was superseded by a message",
        "{They} wrote what made {tool} needless, so it doesn't run",
        "void",
        "{They} wrote what made it needless, and it was not run.",
    ),
    "closed": ApprovalWords(
        "is no longer needed",
        "What asked for {tool} was ended, so it doesn't run",
        "cancelled",
        "What asked for it was ended, and nothing was run.",
    ),
}

JobStatus = Literal["queued", "running", "succeeded", "failed", "cancelled"]


class JobWords(NamedTuple):
    signal: str
    """The kind of the signal that it ended; empty: it has not."""
    step: str
    """What `why` says of a job that is so."""
    ending: Ending


JOBS: Final[dict[JobStatus, JobWords]] = {
    "queued": JobWords("", "waits to be run", "pending"),
    "running": JobWords("", "began, and is planned", "pending"),
    "succeeded": JobWords("job.completed", "is done", "done"),
    "failed": JobWords("job.failed", "failed", "failed"),
    "cancelled": JobWords("job.cancelled", "was cancelled", "cancelled"),
}
