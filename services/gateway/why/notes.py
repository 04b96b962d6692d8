"""What each note of the core means, as a sentence and as the end of a story. Pure.

`tests/gateway/test_why_words.py` checks that every code of the core is here.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from vigil.contracts import Note

from .cutting import clip


class Telling(NamedTuple):
    """A sentence for a step, with {text} and {about}; and what it means at the end of a story.

    `verdict` empty: it ends nothing. `because` takes the place of the note's own text in the
    last sentence.
    """

    sentence: str
    verdict: str = ""
    because: str = ""


_REFUSED: Final = "The gates refused it: {text}."

NOTES: Final[dict[str, Telling]] = {
    "approval_asked": Telling("{about} was asked of a person: {text}."),
    "approval_decided": Telling("A person decided on {about}: {text}."),
    "approval_expired": Telling("{about} expired: {text}."),
    "approval_superseded": Telling("{about} was withdrawn: {text}."),
    "blocked_cap": Telling(_REFUSED, "blocked"),
    "blocked_cooldown": Telling(_REFUSED, "blocked"),
    "blocked_disabled": Telling(_REFUSED, "blocked"),
    "blocked_locked": Telling(_REFUSED, "blocked"),
    "blocked_no_room": Telling(_REFUSED, "blocked"),
    "blocked_ordered_rate": Telling(_REFUSED, "blocked"),
    "budget_exhausted": Telling("No model was asked: {text}.", "failed"),
    "calls_max": Telling("It had to end here: {text}."),
    "cancelled": Telling("{about} was cancelled: {text}.", "cancelled"),
    "child_alive": Telling("What it started is still at it, and is {text}.", "ignored"),
    "child_asks": Telling("A session that it started waits for a person: {text}."),
    "child_done": Telling("What it had set going is done: {text}."),
    "child_failed": Telling("What it had set going failed: {text}."),
    "child_lost": Telling("What it had set going was given up: {text}."),
    "compacted": Telling("Room was made in the context window: {text}."),
    "compacted_unread": Telling("Room was made in the context window: {text}."),
    "compaction_failed": Telling("The earlier part could not be summed up: {text}."),
    "content_cut": Telling("What came in was cut for the model: {text}."),
    "dead_letter": Telling(
        "The event could not be used and was put with the dead letters: {text}.", "failed"
    ),
    "gave_up": Telling("The step was given up {text}.", "failed", "the step was given up {text}"),
    "held": Telling("{about} was held back by {text}.", "held"),
    "incomplete_calls": Telling("The model's answer was cut off: {text}."),
    "interrupted": Telling("Its answer was interrupted: {text}.", "stopped"),
    "job_done": Telling("The job is done: {text}."),
    "job_repeat": Telling("The job was not begun: {text}.", "ignored"),
    "joined": Telling("A message was {text}."),
    "late_result": Telling("The result came too late: {text}.", "ignored"),
    "late_status": Telling("The word of how it goes came too late: {text}.", "ignored"),
    "model_failed": Telling("The model gave no answer: {text}.", "failed"),
    "model_retry": Telling("The model gave no answer yet: {text}.", "retrying"),
    "no_plan": Telling("The job failed: {text}.", "failed"),
    "no_result": Telling("It went on without a tool: {text}."),
    "no_such_approval": Telling("The verdict changed nothing: {text}.", "ignored"),
    "no_such_timer": Telling("{about} could not be cancelled: {text}.", "ignored"),
    "not_begun": Telling("The session never began: {text}.", "cancelled"),
    "not_served": Telling("Nothing was done: {text}.", "ignored"),
    "nothing_inherited": Telling("It began without a history: {text}."),
    "nothing_to_save": Telling("The conversation had paused: {text}.", "silent"),
    "nothing_to_stop": Telling("There was nothing to stop: {text}.", "ignored"),
    "pause_put_off": Telling("The conversation had not paused yet: {text}.", "ignored"),
    "plan_refused": Telling("The model's answer could not be used as a plan: {text}."),
    "planned": Telling("The job was planned: {text}."),
    "put_back": Telling("{about} was put back: {text}.", "held"),
    "queue_full": Telling("It was dropped: {text}.", "dropped"),
    "recall_degraded": Telling("Its memory was not whole: {text}."),
    "recalled": Telling("Memory gave the model {text}."),
    "refusal": Telling("Its answer was a refusal: {text}."),
    "repeat": Telling("It was ignored as a repeat: {text}.", "ignored"),
    "save_cut": Telling("The conversation had paused: {text}."),
    "save_put_off": Telling("What to remember was left for the next pause: {text}.", "ignored"),
    "save_refused": Telling("Something was not handed to memory: {text}."),
    "saved": Telling("The conversation had paused, and what matters went to memory: {text}."),
    "session_cancelled": Telling("The session was ended: {text}.", "cancelled"),
    "silent": Telling("It stayed silent: {text}.", "silent"),
    "stale_deadline": Telling("The deadline no longer counted: {text}.", "ignored"),
    "stale_timer": Telling("{about} no longer counted: it was {text}.", "ignored"),
    "state_expired": Telling("{about} no longer counted: {text}.", "ignored"),
    "stopped": Telling("It was stopped: {text}.", "stopped"),
    "taken_over": Telling("The process that worked on it was gone; {text}."),
    "truncated": Telling("The answer is not whole: {text}."),
    "unknown_stop": Telling("Only the words of the answer count: {text}."),
    "verdict_refused": Telling("The verdict did not count: {text}.", "ignored"),
    "void": Telling("{about} became void: {text}.", "void"),
}
"""Note code -> how it's told."""


def told(note: Note, *, is_named: bool = True) -> str:
    """Return the sentence of a note; one of a code that isn't known here tells itself.

    `is_named`: what the note is about has a name that tells something, as a follow-up has.

    >>> told(Note(code="void", text="the person spoke first", subject="tea"))
    '“tea” became void: the person spoke first.'
    """
    telling = NOTES.get(note.code, Telling("{text}."))
    about = f"“{clip(note.subject, 80)}”" if note.subject and is_named else "It"
    return telling.sentence.format(text=note.text.rstrip("."), about=about)


def reason(note: Note) -> str:
    """Return what a note says as the reason at the end of a sentence."""
    telling = NOTES.get(note.code, Telling(""))
    return (telling.because or "{text}").format(text=note.text.rstrip("."))
