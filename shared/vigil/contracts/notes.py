"""The codes of notes: what each means, how `why` says it, and which signal it gives. Pure.

A turn leaves a note for whoever asks why. The code is for programs, its text for people; the core
writes both. A new code is a row here and nothing else: signals, `why` and the table of
docs/reference/notes.md (a test compares it) follow.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .vocabulary import Ending


class NoteWords(NamedTuple):
    meaning: str
    sentence: str
    """Of a step, with `{text}` for the note's own text and `{about}` for what it is about."""
    ending: Ending | None = None
    """What it means for a story that ends with it; None: it ends none."""
    last: str = ""
    """The last sentence of such a story; empty: as its ending begins, and the text."""
    signal: tuple[str, str] | None = None
    """The kind of its signal, and how that begins, if it gives one of its own."""


_REFUSED: Final = "The gates refused it: {text}."
_BLOCKED: Final = ("message.blocked", "The gates refused a message")

NOTES: Final[dict[str, NoteWords]] = {
    "approval_asked": NoteWords(
        "a person was asked for leave, for which tool and why",
        "{about} was asked of a person: {text}.",
    ),
    "approval_decided": NoteWords(
        "a person gave a verdict on a request, and it counted",
        "A person decided on {about}: {text}.",
    ),
    "approval_expired": NoteWords("nobody gave a verdict in time", "{about} expired: {text}."),
    "approval_superseded": NoteWords(
        "the person wrote instead: the request is withdrawn", "{about} was withdrawn: {text}."
    ),
    "blocked_cap": NoteWords(
        "too many autonomous messages in a row without an answer",
        _REFUSED,
        "blocked",
        signal=_BLOCKED,
    ),
    "blocked_cooldown": NoteWords(
        "the last autonomous message was too short a time ago", _REFUSED, "blocked", signal=_BLOCKED
    ),
    "blocked_disabled": NoteWords(
        "autonomy is switched off, and the person didn't ask for this one",
        _REFUSED,
        "blocked",
        signal=_BLOCKED,
    ),
    "blocked_locked": NoteWords(
        "the state could not be read once; nothing autonomous until the person writes",
        _REFUSED,
        "blocked",
        signal=_BLOCKED,
    ),
    "blocked_no_room": NoteWords(
        "it was to be held back, and `autonomy.follow_ups_max` or their text is reached already",
        _REFUSED,
        "blocked",
        signal=_BLOCKED,
    ),
    "blocked_ordered_rate": NoteWords(
        "too many kept reminders within an hour", _REFUSED, "blocked", signal=_BLOCKED
    ),
    "budget_exhausted": NoteWords(
        "no model was asked: the day's tokens are used up; `model_failed` follows",
        "No model was asked: {text}.",
        "failed",
        signal=("budget.exhausted", "No model was asked"),
    ),
    "calls_max": NoteWords(
        "the limit of model calls for one event was reached", "It had to end here: {text}."
    ),
    "cancelled": NoteWords(
        "the agent or a person cancelled the follow-up",
        "{about} was cancelled: {text}.",
        "cancelled",
        signal=("timer.cancelled", "A timer was cancelled"),
    ),
    "child_alive": NoteWords(
        "a child's deadline fired, but it told something since; when it is looked at again",
        "What it started is still at it, and is {text}.",
        "ignored",
    ),
    "child_asks": NoteWords(
        "a child, or one of its own, waits for a person's word; which",
        "A session that it started waits for a person: {text}.",
    ),
    "child_done": NoteWords(
        "a worker that no loop waited for ended with a result",
        "What it had started is done: {text}.",
    ),
    "child_failed": NoteWords(
        "a worker that no loop waited for failed, was cancelled or took too many steps",
        "What it had started failed: {text}.",
    ),
    "child_lost": NoteWords(
        "a child, or a call that a person let through, told nothing in time; it is ended",
        "What it had started was given up: {text}.",
    ),
    "compacted": NoteWords(
        "the oldest rows were summed up, and how much was handed to memory",
        "Room was made in the context window: {text}.",
    ),
    "compacted_unread": NoteWords(
        "the window was all but full: the oldest rows were left out without asking a model",
        "Room was made in the context window: {text}.",
    ),
    "compaction_failed": NoteWords(
        "the model gave no summary; it goes on without, and is asked again a minute later at "
        "the earliest",
        "The earlier part could not be summed up: {text}.",
    ),
    "content_cut": NoteWords(
        "the content of an event from outside is longer than a row may be",
        "What came in was cut for the model: {text}.",
    ),
    "dead_letter": NoteWords(
        "the event can't be used; it lies in DEAD with the cause",
        "The event could not be used and became a dead letter: {text}.",
        "failed",
        signal=("error.event", "An event could not be used"),
    ),
    "gave_up": NoteWords(
        "the step was tried too often",
        "The step was given up {text}.",
        "failed",
        last="It was not said: the step was given up {text}.",
        signal=("error.event", "A step was given up"),
    ),
    "held": NoteWords("put off, and until when", "{about} was held back by {text}.", "held"),
    "incomplete_calls": NoteWords(
        "the model's answer was cut off, so its tool calls were not run",
        "The model's answer was cut off: {text}.",
    ),
    "interrupted": NoteWords(
        "the person wrote again before this message was answered (`interrupt`)",
        "Its answer was interrupted: {text}.",
        "stopped",
    ),
    "job_done": NoteWords("the last step of a job is over", "The job is done: {text}."),
    "job_repeat": NoteWords(
        "the job runs already, or was run since that start was asked for",
        "The job was not begun: {text}.",
        "ignored",
    ),
    "joined": NoteWords(
        "this message is answered together with a later one (`coalesce`)", "A message was {text}."
    ),
    "late_result": NoteWords(
        "a tool result that no open call waits for: a repeat, or after the deadline or the end "
        "of the loop",
        "The result came too late: {text}.",
        "ignored",
    ),
    "late_status": NoteWords(
        "a child told how it goes after its end was taken in, or as none of this session",
        "The word of how it goes came too late: {text}.",
        "ignored",
    ),
    "model_failed": NoteWords(
        "the model gave no answer, for good",
        "The model gave no answer: {text}.",
        "failed",
        signal=("error.model", "No answer from a model"),
    ),
    "model_retry": NoteWords(
        "the model gave no answer for now, and when it is asked again",
        "The model gave no answer yet: {text}.",
        "retrying",
        signal=("error.retry", "No answer from a model yet"),
    ),
    "no_plan": NoteWords(
        "twice the model's answer was no plan: the job failed", "The job failed: {text}.", "failed"
    ),
    "no_result": NoteWords(
        "a service ran no tool, or told nothing of it, within `model.tool_timeout_s`; the "
        "model was told",
        "It went on without a tool: {text}.",
    ),
    "no_such_approval": NoteWords(
        "a verdict on what is not open: a repeat, too late, or never asked",
        "The verdict changed nothing: {text}.",
        "ignored",
    ),
    "no_such_timer": NoteWords(
        "a person cancelled what isn't open", "{about} could not be cancelled: {text}.", "ignored"
    ),
    "not_begun": NoteWords(
        "a `start` came after something else, as a rule a `cancel`: nothing begins, and the "
        "parent is told",
        "The session never began: {text}.",
        "cancelled",
    ),
    "not_served": NoteWords(
        "this kind of session doesn't take that event: `tick` nobody, messages only "
        "conversations, `start` and `cancel` only the others",
        "Nothing was done: {text}.",
        "ignored",
    ),
    "nothing_inherited": NoteWords(
        "a branch's parent is gone: it begins without a history",
        "It began without a history: {text}.",
    ),
    "nothing_to_save": NoteWords(
        "at a pause: there was nothing to remember",
        "The conversation had paused: {text}.",
        "silent",
    ),
    "nothing_to_stop": NoteWords(
        "`stop` came while no loop was open, or `cancel` after the end",
        "There was nothing to stop: {text}.",
        "ignored",
    ),
    "pause_put_off": NoteWords(
        "the conversation has not paused yet, why, and when it is looked at again",
        "The conversation had not paused yet: {text}.",
        "ignored",
    ),
    "plan_refused": NoteWords(
        "the model's answer was no plan; it is asked once more, with the reason",
        "The model's answer could not be used as a plan: {text}.",
    ),
    "planned": NoteWords("the model made a plan: its steps follow", "The job was planned: {text}."),
    "put_back": NoteWords(
        "a kept reminder was interrupted; it follows after the answer",
        "{about} was put back: {text}.",
        "held",
    ),
    "queue_full": NoteWords(
        "too many events are waiting; this follow-up, or event from outside, is dropped",
        "It was dropped: {text}.",
        "dropped",
        signal=("error.event", "An event was dropped"),
    ),
    "recall_degraded": NoteWords(
        "memory could not be asked before the model was, or only in part, and why",
        "Its memory was not whole: {text}.",
    ),
    "recalled": NoteWords(
        "how many memories the model was given, and the ids of the best",
        "Memory gave the model {text}.",
    ),
    "refusal": NoteWords("the model declined to answer", "Its answer was a refusal: {text}."),
    "repeat": NoteWords(
        "a message with this idempotency key, or an event from outside with this id, was "
        "folded before",
        "It was ignored as a repeat: {text}.",
        "ignored",
    ),
    "save_cut": NoteWords(
        "at a pause: there was more than goes into one call; the rest follows at the next",
        "The conversation had paused: {text}.",
    ),
    "save_put_off": NoteWords(
        "what is to be remembered gave way to what came in",
        "What to remember was left for the next pause: {text}.",
        "ignored",
    ),
    "save_refused": NoteWords(
        "what a model wanted to remember without a tool loop doesn't fit, and why",
        "Something was not handed to memory: {text}.",
    ),
    "saved": NoteWords(
        "at a pause: how much was handed to memory",
        "The conversation had paused, and what matters went to memory: {text}.",
    ),
    "session_cancelled": NoteWords(
        "who started this session, or a person, ended it, and why; or it will not begin",
        "The session was ended: {text}.",
        "cancelled",
    ),
    "silent": NoteWords("there was nothing to say", "It stayed silent: {text}.", "silent"),
    "stale_deadline": NoteWords(
        "what the deadline waited for is over", "The deadline no longer counted: {text}.", "ignored"
    ),
    "stale_timer": NoteWords(
        "the timer is void, was replaced, or was said before",
        "{about} no longer counted: it was {text}.",
        "ignored",
        last="Nothing was said: it was {text}.",
    ),
    "state_expired": NoteWords(
        "a timer came for a session whose records are older than `retention.sessions_days`: it "
        "starts from its defaults",
        "{about} no longer counted: {text}.",
        "ignored",
    ),
    "stopped": NoteWords(
        "who stopped the loop, if they said so", "It was stopped: {text}.", "stopped"
    ),
    "taken_over": NoteWords(
        "which attempt this is", "The process that worked on it was gone; {text}."
    ),
    "truncated": NoteWords(
        "the model stopped before the end of its answer, which is marked for the reader",
        "The answer is not whole: {text}.",
    ),
    "unknown_stop": NoteWords(
        "the model stopped for a reason that is not known here; its words count, its tool "
        "calls don't",
        "Only the words of the answer count: {text}.",
    ),
    "verdict_refused": NoteWords(
        "a verdict that does not fit the request, and why: nothing changed",
        "The verdict did not count: {text}.",
        "ignored",
    ),
    "void": NoteWords(
        "the person spoke first, or follow-ups were cleared",
        "{about} became void: {text}.",
        "void",
        signal=("timer.voided", "A follow-up was dropped"),
    ),
}
_UNKNOWN: Final = NoteWords("", "{text}.")
_UNKNOWN_REFUSAL: Final = NoteWords("", _REFUSED, "blocked", signal=_BLOCKED)


def note_words(code: str) -> NoteWords:
    """Return the words of a code; one of a later version speaks for itself.

    >>> note_words("void").ending, note_words("of_tomorrow").sentence
    ('void', '{text}.')
    """
    return NOTES.get(code, _UNKNOWN_REFUSAL if code.startswith("blocked_") else _UNKNOWN)
