"""The codes of notes: what each means, how `why` says it, and which signal it gives. Pure.

A turn leaves a note for whoever asks why: a code for programs, a text for people. A new code is
a row here and nothing else: signals, `why` and docs/reference/notes.md follow.
"""

from __future__ import annotations

from typing import Final

from .vocabulary import NoteWords

_REFUSED: Final = "The gates refused it: {text}."


def _blocked(meaning: str) -> NoteWords:
    signal = ("message.blocked", "The gates refused a message")
    return NoteWords(meaning, _REFUSED, "blocked", signal=signal)


NOTES: Final[dict[str, NoteWords]] = {
    "approval_asked": NoteWords(
        "a person was asked for approval, of which tool and why",
        "{about} was asked of a person: {text}.",
    ),
    "approval_decided": NoteWords("a person decided", "A person decided on {about}: {text}."),
    "approval_expired": NoteWords("nobody decided in time", "{about} expired: {text}."),
    "approval_shown": NoteWords(
        "the person accepted what they weren't told the arguments of, and was told them first",
        "They were told first what exactly {about} is: {text}.",
    ),
    "approval_spoken": NoteWords(
        "the person decided on a request by a message",
        "Their message was a verdict on {about}: {text}.",
    ),
    "approval_superseded": NoteWords(
        "what the person said made it needless: the request is withdrawn",
        "{about} was withdrawn: {text}.",
    ),
    "blocked_cap": _blocked("too many autonomous messages without an answer"),
    "blocked_cooldown": _blocked("too soon after the last autonomous message"),
    "blocked_disabled": _blocked("autonomy is off, and nobody asked for this one"),
    "blocked_locked": _blocked(
        "the state was unreadable; nothing autonomous until the person writes"
    ),
    "blocked_no_room": _blocked(
        "it was to be held, and too many follow-ups, or too much text, are open"
    ),
    "blocked_ordered_rate": _blocked("too many kept reminders within an hour"),
    "budget_exhausted": NoteWords(
        "a limit is reached, no model was asked: `budget_waits` or `model_failed` follows",
        "No model was asked: {text}.",
        "failed",
        signal=("budget.exhausted", "No model was asked"),
    ),
    "budget_raised": NoteWords("a person raised their limit for a day", "It was raised: {text}."),
    "budget_waits": NoteWords(
        "the budget has no room; when it is asked again",
        "It waits for the budget: {text}.",
        "retrying",
    ),
    "budget_warned": NoteWords(
        "a limit of the day is nearly reached, or reached: told once for each account and day",
        "A budget warning was given: {text}.",
        signal=("budget.warned", "A limit of the day"),
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
        "a child's deadline passed, but it reported since",
        "What it started is still at it, and is {text}.",
        "ignored",
    ),
    "child_asks": NoteWords(
        "a child, or one of its own, waits for a person; which",
        "A session that it started waits for a person: {text}.",
    ),
    "child_done": NoteWords(
        "a worker that no loop waited for has a result", "What it had started is done: {text}."
    ),
    "child_failed": NoteWords(
        "a worker that no loop waited for failed, was cancelled or took too many steps",
        "What it had started failed: {text}.",
    ),
    "child_lost": NoteWords(
        "a child, or an accepted call, reported nothing in time; it is ended",
        "What it had started was given up: {text}.",
    ),
    "compacted": NoteWords(
        "the oldest rows were summarized; how much was offered to memory",
        "Room was made in the context window: {text}.",
    ),
    "compacted_unread": NoteWords(
        "the window was almost full: the oldest rows were dropped without a model call",
        "Room was made in the context window: {text}.",
    ),
    "compaction_failed": NoteWords(
        "the model gave no summary; asked again a minute later",
        "The earlier part could not be summed up: {text}.",
    ),
    "content_cut": NoteWords(
        "the content of an outside event is longer than a row may be",
        "What came in was cut for the model: {text}.",
    ),
    "cycle_worked": NoteWords(
        "a cycle has nothing more to do, and is asked what came of it", "It had worked ({text})."
    ),
    "dead_letter": NoteWords(
        "the event is unusable; it is in DEAD with the cause",
        "The event could not be used and became a dead letter: {text}.",
        "failed",
        signal=("error.event", "An event could not be used"),
    ),
    "digested": NoteWords(
        "another session's report waits for the digest, and why",
        "It waits for the next digest: {text}.",
        "held",
    ),
    "empty_answer": NoteWords("an answer had no words", "Its answer was empty: {text}."),
    "extraction_asked": NoteWords(
        "a run of the timetable told its end, and is asked once what else is to be kept",
        "Its end was told, and it was asked what else is worth keeping ({text}).",
    ),
    "extraction_kept": NoteWords(
        "after a run of the timetable: how much was kept beside its result",
        "After its end memory was given what else it came across: {text}.",
    ),
    "extraction_missing": NoteWords(
        "after a run of the timetable: why nothing more was kept",
        "After its end nothing more was kept: {text}.",
    ),
    "facts_told": NoteWords("a run told facts that its row names", "It told facts: {text}."),
    "gave_up": NoteWords(
        "the step was tried too often",
        "The step was given up {text}.",
        "failed",
        last="It was not said: the step was given up {text}.",
        signal=("error.event", "A step was given up"),
    ),
    "granted": NoteWords(
        "a standing grant let a call run that would have been asked about; which",
        "A standing grant ({about}) let it run: {text}.",
    ),
    "habit_pursued": NoteWords("a habit becomes a goal, and why", "It's a habit: {text}."),
    "held": NoteWords("delayed, and until when", "{about} was held back by {text}.", "held"),
    "incomplete_calls": NoteWords(
        "the model's answer was cut off, so its tool calls were not run",
        "The model's answer was cut off: {text}.",
    ),
    "interrupted": NoteWords(
        "the person wrote again before this was answered (`interrupt`, or a program's tool waited)",
        "Its answer was interrupted: {text}.",
        "stopped",
    ),
    "job_done": NoteWords("the last step of a job is over", "The job is done: {text}."),
    "job_repeat": NoteWords(
        "the job runs already, or ran since that start was requested",
        "The job was not begun: {text}.",
        "ignored",
    ),
    "joined": NoteWords(
        "this message is answered together with a later one (`coalesce`)", "A message was {text}."
    ),
    "late_result": NoteWords(
        "a tool result that no open call waits for: a repeat, or too late",
        "The result came too late: {text}.",
        "ignored",
    ),
    "late_status": NoteWords(
        "a report of a child that is over, or isn't this session's",
        "The status report came too late: {text}.",
        "ignored",
    ),
    "look_begun": NoteWords("a look of the mind begins, and at what", "The mind looks: {text}."),
    "look_decided": NoteWords("what a look decided, how surely, and why", "It decided on {text}."),
    "look_failed": NoteWords("a look of the mind failed", "The look failed: {text}.", "failed"),
    "look_left": NoteWords("a look left a goal as due", "A goal can't be taken down: {text}."),
    "look_refused": NoteWords("an answer held no decisions", "It couldn't be used: {text}."),
    "mail_read": NoteWords("a reader said which new mail matters", "It read new mail: {text}."),
    "malformed_calls": NoteWords(
        "the model's tool calls could not be read: it was told so, and they were not run",
        "The model wrote what is no tool call: {text}.",
    ),
    "model_away": NoteWords(
        "the fallback answered, and not the session's own model", "Another model thought: {text}."
    ),
    "model_back": NoteWords(
        "the session's own model answers again, and not the fallback",
        "The usual model answered again: {text}.",
    ),
    "model_failed": NoteWords(
        "the model gave no answer, for good",
        "The model gave no answer: {text}.",
        "failed",
        signal=("error.model", "No answer from a model"),
    ),
    "model_fallback": NoteWords(
        "the model gave no answer: which other one is asked now, until when, and why",
        "Another model took over: {text}.",
        signal=("model.fallback", "Another model took over"),
    ),
    "model_overlong": NoteWords(
        "the model's server refused a request as too long: room was made for another one",
        "It was too long for the model: {text}.",
    ),
    "model_retry": NoteWords(
        "the model gave no answer for now; when it is asked again",
        "The model gave no answer yet: {text}.",
        "retrying",
        signal=("error.retry", "No answer from a model yet"),
    ),
    "model_unasked": NoteWords(
        "the model failed others, so it isn't asked for now; when it will be",
        "No model was asked yet: {text}.",
        "retrying",
    ),
    "next_look": NoteWords(
        "a run of the timetable chose when the next is, and why", "It chose its next look: {text}."
    ),
    "no_channel": NoteWords(
        "what it was to go over is not configured any more; it goes where it else would",
        "It was sent another way: {text}.",
    ),
    "no_plan": NoteWords(
        "the model's answer was no plan, twice: the job failed", "The job failed: {text}.", "failed"
    ),
    "no_result": NoteWords(
        "no result of a service within `model.tool_timeout_s`, or of a program's own tool within "
        "`model.caller_timeout_s`; the model was told",
        "It went on without a tool: {text}.",
    ),
    "no_such_approval": NoteWords(
        "a decision on nothing that is open", "The verdict changed nothing: {text}.", "ignored"
    ),
    "no_such_timer": NoteWords(
        "a person cancelled what isn't open", "{about} could not be cancelled: {text}.", "ignored"
    ),
    "not_begun": NoteWords(
        "a `start` came after something else, such as a `cancel`",
        "The session never began: {text}.",
        "cancelled",
    ),
    "not_forked": NoteWords(
        "a fork of another conversation was asked for, and this one had begun",
        "It did not become a fork: {text}.",
        "ignored",
    ),
    "not_sampled": NoteWords("a server got no model's answer", "No model answered it: {text}."),
    "not_served": NoteWords(
        "this kind of session doesn't take that event", "Nothing was done: {text}.", "ignored"
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
        "`stop` while no loop was open, or `cancel` after the end",
        "There was nothing to stop: {text}.",
        "ignored",
    ),
    "offer_dropped": NoteWords(
        "the person isn't asked about an invitation that came by mail",
        "They weren't asked about an invitation: {text}.",
    ),
    "pause_put_off": NoteWords(
        "the conversation has not paused yet, and why",
        "The conversation had not paused yet: {text}.",
        "ignored",
    ),
    "plan_refused": NoteWords(
        "the model's answer was no plan; it is asked once more",
        "The model's answer could not be used as a plan: {text}.",
    ),
    "planned": NoteWords("the model made a plan: its steps follow", "The job was planned: {text}."),
    "promise_asked": NoteWords(
        "what nothing did was promised or told as done: it wasn't said yet, the model was asked",
        "Its answer wasn't said yet, as nothing was done or planned for it: {text}.",
    ),
    "promise_unkept": NoteWords(
        "what is said promises, or tells as done, what nothing did, although its model was asked",
        "It gave its word, and did and planned nothing for it: {text}.",
    ),
    "put_back": NoteWords(
        "a kept reminder was interrupted; it follows after the answer",
        "{about} was put back: {text}.",
        "held",
    ),
    "queue_full": NoteWords(
        "too many events wait; this one is dropped",
        "It was dropped: {text}.",
        "dropped",
        signal=("error.event", "An event was dropped"),
    ),
    "recall_degraded": NoteWords("memory told not all, and why", "Memory was incomplete: {text}."),
    "recalled": NoteWords(
        "how many memories the model was given, and the best's ids", "Memory gave the model {text}."
    ),
    "refusal": NoteWords("the model declined to answer", "Its answer was a refusal: {text}."),
    "repeat": NoteWords(
        "a message with this idempotency key, or an outside event with this id, came before",
        "It was ignored as a repeat: {text}.",
        "ignored",
    ),
    "report_missing": NoteWords(
        "the model gave no answer to what came of a cycle; its last words stand for it",
        "It ended without a report: {text}.",
    ),
    "report_refused": NoteWords(
        "an answer was no report of a cycle; the model is asked once more",
        "What it said was no report: {text}.",
    ),
    "rewriting_refused": NoteWords(
        "an answer was no text for a merged summary", "{about} stays as merged: {text}."
    ),
    "save_cut": NoteWords(
        "at a pause: there was more than fits into one call; the rest follows",
        "The conversation had paused: {text}.",
    ),
    "save_put_off": NoteWords(
        "saving gave way to what came in",
        "What to remember was left for the next pause: {text}.",
        "ignored",
    ),
    "save_refused": NoteWords(
        "what a model wanted to remember is invalid, and why",
        "Something was not handed to memory: {text}.",
    ),
    "saved": NoteWords(
        "at a pause: how much was saved",
        "The conversation had paused, and what matters went to memory: {text}.",
    ),
    "session_cancelled": NoteWords(
        "who ended this session, or prevented it, and why",
        "The session was ended: {text}.",
        "cancelled",
    ),
    "silent": NoteWords("there was nothing to say", "It stayed silent: {text}.", "silent"),
    "stale_deadline": NoteWords(
        "what the deadline waited for is over", "The deadline no longer counted: {text}.", "ignored"
    ),
    "stale_timer": NoteWords(
        "the timer is void, replaced, or was said before",
        "{about} no longer counted: it was {text}.",
        "ignored",
        last="Nothing was said: it was {text}.",
    ),
    "state_expired": NoteWords(
        "a timer of a session whose records expired: it starts anew",
        "{about} no longer counted: {text}.",
        "ignored",
    ),
    "stopped": NoteWords(
        "who stopped the loop, if they said so", "It was stopped: {text}.", "stopped"
    ),
    "taken_over": NoteWords("which attempt it is", "Who worked on it was gone; {text}."),
    "truncated": NoteWords(
        "the model stopped before the end of its answer, which is marked",
        "The answer is not whole: {text}.",
    ),
    "unknown_stop": NoteWords(
        "the model stopped for an unknown reason; only its words count",
        "Only the words of the answer count: {text}.",
    ),
    "unvouched": NoteWords("a person took that back", "{about} isn't fine any more: {text}."),
    "verdict_refused": NoteWords(
        "a decision that doesn't fit the request, and why: nothing changed",
        "The verdict did not count: {text}.",
        "ignored",
    ),
    "void": NoteWords(
        "the person wrote first, or follow-ups were cleared",
        "{about} became void: {text}.",
        "void",
        signal=("timer.voided", "A follow-up was dropped"),
    ),
    "vouched": NoteWords("a person vouched for a letter", "They vouched for {about}: {text}."),
}
_UNKNOWN: Final = NoteWords("", "{text}.")
_UNKNOWN_REFUSAL: Final = _blocked("")


def note_words(code: str) -> NoteWords:
    """Return the words of a code; one of a later version speaks for itself.

    >>> note_words("void").ending, note_words("of_tomorrow").sentence
    ('void', '{text}.')
    """
    return NOTES.get(code, _UNKNOWN_REFUSAL if code.startswith("blocked_") else _UNKNOWN)
