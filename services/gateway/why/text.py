"""How a story speaks: people, instants, what was said, and the templates of its sentences. Pure.

A template is a text with `{name}` for a value and `[...]` for what is left out if a value in it is
empty; `[this|that]` says that instead. What comes after a colon says how a value is written: `q`
quotes it, `at` is an instant, a number cuts it to so many characters, `of time` counts times (`of
memory/memories`), and `if` writes nothing: the value only decides. `{they}` and `{They}` name the
person.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from vigil.contracts.vocabulary import APPROVALS, OUTCOMES, RECEIPTS
from vigil.teams import TEAM
from vigil.words.amounts import count_of
from vigil.zones.wall import local

TEXT_LENGTH_MAX: Final = 300
"""Characters of a text that a story quotes."""
_CHOICE: Final = re.compile(r"\[([^\[\]|]*)(?:\|([^\[\]]*))?\]")


class Voice(msgspec.Struct, frozen=True):
    """How the person is named."""

    person: str
    asker: str

    @property
    def is_asking(self) -> bool:
        """Whether the person asks for their own story."""
        return self.asker == self.person

    @property
    def they(self) -> str:
        if self.person == TEAM:
            return "the team"
        return "you" if self.is_asking else self.person

    @property
    def start(self) -> str:
        """The same at the start of a sentence."""
        if self.person == TEAM:
            return "The team"
        return "You" if self.is_asking else self.person

    def name(self, user: str) -> str:
        """Name anybody at the start of a sentence."""
        return "You" if user == self.asker else clip(user, 64)

    def speaker(self, member: str) -> str:
        """Name who wrote a message: the person, or a member of the team."""
        return self.name(member) if member else self.start

    def address(self, text: str) -> str:
        """Name the person in a text that a service wrote.

        >>> own, other = Voice("ann", "ann"), Voice("ann", "bob")
        >>> own.address("the person has spoken"), other.address("the person")
        ('you have spoken', 'ann')
        >>> own.address("the person's own pause"), other.address("the person's own pause")
        ('your own pause', "ann's own pause")
        """
        if self.is_asking:
            text = text.replace("the person has", "you have").replace("the person's", "your")
        return text.replace("the person", self.they)

    def fill(self, template: str, values: Mapping[str, Any]) -> str:
        """Fill in a template.

        >>> ann = Voice("ann", "ann")
        >>> ann.fill("{They} ended {what:q}[ ({why})].", {"what": "tea", "why": ""})
        'You ended “tea”.'
        >>> ann.fill("[{who}|Nobody] came[ at {when:at}].", {"who": "", "when": None})
        'Nobody came.'
        """
        known = {"they": self.they, "They": self.start, **values}

        def choose(choice: re.Match[str]) -> str:
            names = [name for _, name, _, _ in _WORDS.parse(choice[1]) if name]
            return choice[1] if all(known[name] for name in names) else choice[2] or ""

        return _WORDS.vformat(_CHOICE.sub(choose, template), (), known)


class _Words(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        match format_spec:
            case "q":
                return quote(value)
            case "at":
                return instant(value)
            case "if":
                return ""
            case _ if format_spec.startswith("of "):
                return count_of(value, *format_spec[3:].split("/"))
            case _ if format_spec.isdigit():
                return clip(value, int(format_spec))
        written: str = super().format_field(value, format_spec)
        return written


_WORDS: Final = _Words()


def clip(text: str, length_max: int = TEXT_LENGTH_MAX) -> str:
    """Join the lines of a text and cut what is too long.

    >>> clip("a  b\\nc", 10), clip("abcdef", 4)
    ('a b c', 'abc…')
    """
    line = " ".join(text[: 4 * length_max].split())
    return line if len(line) <= length_max else line[: length_max - 1] + "…"


def instant(at: datetime) -> str:
    """Return an instant for people.

    >>> instant(datetime(2026, 11, 20, 9, tzinfo=UTC))
    '2026-11-20 09:00:00 UTC'
    >>> instant(datetime.fromisoformat("9999-12-31T23:59:59-12:00"))
    '9999-12-31 23:59:59 UTC'
    """
    return f"{local(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def quote(text: str) -> str:
    return f"“{clip(text)}”"


# ---------------------------------------------------------------- templates

EXACT_S: Final = 60.0
"""What is shorter is told to a tenth of a second."""
LATE_S: Final = 1.0
"""A timer that is later than this is told to be late."""
RETRY: Final = "The wait before the model is asked again was over"
DEADLINES: Final = {
    "_coalesce": "The wait for more messages was over",
    "_call": "The wait for tools was over",
    "_pause": "It was time to look whether the conversation had paused",
    "_child": "It was time to look whether a session that it started is still at it",
    "_approval": "The time for a verdict on a request was over",
    "_digest": "It was time to say what had waited",
}
"""Name of a deadline -> what it means; any other is that of a model call: `RETRY`."""

_NUMBER: Final = (
    " (turn {ordinal}[, model {model}][, {tier} tier by its {tier_reason}: {input_tokens:,} tokens]"
    "[{tier:if}, {cached_tokens:,} of them cached][{tier:if}, and {output_tokens:,} of answer])."
)
_BECAUSE: Final = "[ ({reason})]."
_DESCENDS: Final = "[{is_tainted:if}; it descends from untrusted content]"
_HOLDS: Final = "[{is_tainted:if}; it holds untrusted content]"
_SENT: Final = "[ over the channel {channel:q}]: {text:q}" + _DESCENDS
_NEXT: Final = "[: {reason}].[ The next is at {next_at:at}.]"
_SAID: Final = "[: {said:q}|.]"

STARTED: Final = "{begun}: {prompt:q}"
"""For a session that was started; how, says its kind."""
TEMPLATES: Final[dict[str, str]] = {
    # What came in.
    "message.in": "{who} wrote: {text:q}[, and attached {files:300}]",
    "message.imported": "{who} said, before it was imported from {origin}: {text:q}" + _HOLDS + ".",
    "timer.due": "The follow-up {timer_id:q} came due[, {late} late].",
    "timer.due:early": "The hours that held back {timer_id:q} had changed.",
    "timer.due:deadline": "{wait}[, {late} late].",
    "event.external": "[{is_trusted:if}A trusted|An untrusted] event[ of the kind {kind:80}]"
    "[ from {origin:80}] came in by {source:80}: {content:q}",
    "told": "{origin} reported[ of a {what}][ ({title})]: {text:q}" + _HOLDS,
    "tick": "A regular tick came.",
    "control.stop": "{They} asked to stop the running turn" + _BECAUSE,
    "control.cancel_timer": "{They} cancelled {timer_id:q}" + _BECAUSE,
    "control.clear_follow_ups": "All follow-ups but reminders were cleared" + _BECAUSE,
    "control.start": "The session was started.",
    "control.start:job": "The job was submitted: {prompt:q}" + _DESCENDS,
    "control.start:task": "A worker began the task {prompt:q}" + _DESCENDS,
    "control.start:slot": "The row {row:q} of the timetable was due: {prompt:q}" + _DESCENDS,
    "control.start:again": "The row {row:q} of the timetable was begun again, as no model had "
    "answered: {prompt:q}" + _DESCENDS,
    "control.start:child": "The session was started for: {prompt:q}" + _DESCENDS,
    "control.fork": "{They} forked the conversation from another one.",
    "control.past": "What was said before was imported.",
    "control.vouch": "{They} vouched for a letter: its text counts as theirs, word for word.",
    "control.results": "{Their} program told what came of its tools.",
    "control.unvouch": "{They} don't vouch for a letter any more: it is closed again.",
    "control.cancel": "The session was cancelled" + _BECAUSE,
    "control.status": "A session that it started reported progress.",
    "control.status:running": "A session that it started reported progress: {text:q}",
    "control.status:asking": "A session that it started waits for a person: {text:q}",
    "control.approval": "{They} decided on a request.",
    "control.approval:accept": "{who} accepted the request" + _SAID,
    "control.approval:edit": "{who} accepted the request with other arguments" + _SAID,
    "control.approval:answer": "{who} answered the request" + _SAID,
    "control.approval:reject": "{who} rejected the request" + _SAID,
    "tool.result": "{tool} [{is_error:if}failed|answered]: {content:q}" + _HOLDS,
    # What a turn decided.
    **{f"turn.{outcome}": words.step + _NUMBER for outcome, words in OUTCOMES.items()},
    **{f"turn.{outcome}:aside": "The agent took note" + _NUMBER for outcome in OUTCOMES},
    "tool.refused": "It called {name}: {refusal:q}",
    "tool.asked": "It asked for {tool}[{is_accepted:if}, which was accepted]: {text:q}",
    "memory.given": "It gave memory something to save: {text:q}",
    "timer.planned": "It planned [{keep:if}a reminder that {they} asked for|a follow-up], "
    "{timer_id:q}, for {fire_at:at}[; the reason: {reason:q}][; it will say {message:q}]"
    + _DESCENDS
    + ".",
    "timer.planned:others": "It planned {others} other follow-up[{several:if}s], too.",
    "send.decided:answer": "It decided to answer" + _SENT,
    "send.decided:voidable": "Nothing held it back, and it decided to say" + _SENT,
    "send.decided:ordered": "It decided to say, as {they} had asked" + _SENT,
    "model.retry": "It tries again at {retry_at:at}.",
    "more": "Left out of this turn: {more:of more thing}.",
    # What it set in motion.
    "call.cancelled": "It cancelled [{is_child:if}the session behind ]{tool}[: {reason}].",
    "parent.running": "It reported its progress: {text:q}" + _HOLDS,
    "parent.asking": "It reported that it waits for a person: {text:q}" + _HOLDS,
    "parent.done": "It reported its result to the session that started it: {text:q}" + _HOLDS,
    "parent.failed": "It reported that it failed: {text:q}" + _HOLDS,
    "task.done": "It wrote its result to the task: {text:q}" + _HOLDS,
    "task.failed": "It wrote to the task that it failed: {text:q}" + _HOLDS,
    "slot.done": "It ended[ with: {text:q}|; there was nothing to tell.]" + _HOLDS,
    "slot.failed": "It failed, and had that told: {text:q}" + _HOLDS,
    "again.failed": "No model answered. Its row begins it again later, or has that told: {text:q}"
    + _HOLDS,
    "task.made": "It put the task {title:q} on the board, as {status}" + _HOLDS,
    "task.changed": "It changed the task {title:q}, to {status}" + _HOLDS,
    "goal.set": "It set the goal {title:q}, as {status}" + _HOLDS,
    "goal.pursued": "It changed the goal {title:q}, {status}" + _HOLDS,
    "goal.split": "It split the goal {title:q}" + _HOLDS,
    "preference.noted": "It noted how you like {title:q}.",
    # What became of what stands in no session's log.
    "task.made:board": "{who} put the task {title:q} on the board, as {status}[: {why:q}|.]",
    "task.removed": "{who} removed the task {title:q}.",
    "task.changed:board": "{who} changed the task {title:q}[: {why:q}|.]",
    "task.moved": "{who} moved the task {title:q} to {status}[: {why:q}|.]",
    "task.begun": "Try {tries} of the task {title:q} began.",
    "task.ended": "The task {title:q} is {status}.",
    "goal.made": "{who} set the goal {title:q}[: {why:q}|.]" + _HOLDS,
    "goal.changed": "{who} changed the goal {title:q}[: {why:q}|.]",
    "goal.moved": "{who} made the goal {title:q} {status}[: {why:q}|.]",
    "preference.taught": (
        "{who} noted for {title}: {value:q}, as sure as {confidence}[; from {lesson:q}|.]"
    ),
    "preference.corrected": "{who} noted for {title}: {value:q}[; from {lesson:q}|.]",
    "preference.removed": "{who} removed what was noted for {title}.",
    "action.taken": "It called {title} by itself: {what:q}" + _HOLDS,
    "action.ended": "That ended: {outcome}.",
    "action.liked": "{who} liked it[: {said:q}|.]",
    "action.disliked": "{who} disliked it[: {said:q}|.]",
    "grant.made": "{who} allowed {tool} beforehand[ in {session}], with {covers:q}[: {why:q}|.]",
    "grant.changed": "{who} changed what is allowed: {tool}, with {covers:q}[: {why:q}|.]",
    "grant.used": "It let {tool} run in {session}: use {uses}.",
    "grant.revoked": "{who} revoked it[: {why:q}|.]",
    "memory.saved": "{who} saved it in memory, as {type}[ from {source}]"
    "[, in place of {merged:of other}]" + _HOLDS + ".",
    "memory.replaced": "The memory {other} stands in its place.",
    "memory.merged": "It was merged into the memory {other}.",
    "memory.forgotten": "It was forgotten ({reason}).",
    "memory.undone": "{who} reverted {source}, and with it this.",
    "memory.restored": "It stands again: what had taken its place was reverted.",
    "told_home": "It had {home} told: {text:q}" + _HOLDS,
    **{f"approval.{state}": words.step + _SAID for state, words in APPROVALS.items()},
    "approval.open": APPROVALS["open"].step + ": {text:q}, until {expires_at:at}.",
    "approval.open:question": "It asks {they}: {text:q}, until {expires_at:at}.",
    "approval.edited": APPROVALS["edited"].step + ": {text:q}",
    "job:begun": "The job {title:q} {words}.",
    "job:planned": "It planned {steps} step[{several:if}s]: {text:q}.",
    "job:step_begun": "Step {number}, {tool}, began.",
    "job:step": "Step {number}, {tool}, [{is_failed:if}failed|is done]: {text:q}.",
    "job:succeeded": "The job {title:q} {words}: {run} step[{several:if}s]"
    "[; {failed} of them failed].",
    "job:ended": "The job {title:q} {words}[: {text}].",
    # What others did about it.
    "call.claimed": "The call of {tool} was taken on.",
    "send.said": "It was said in the transcript[, tagged {tag:q}][: {text:q}|.]",
    **{f"receipt.{outcome}": words.step + "[: {reason}]." for outcome, words in RECEIPTS.items()},
    "channel.ordered": "[{requeued_by} requeued it|It was queued] for the channel {channel:q}"
    "[, since {instead_of:q} had refused it].",
    "channel.begun": "Attempt {number} began.",
    "channel.refused": "Attempt {number} was refused" + _NEXT,
    "channel.unknown": "Whether attempt {number} arrived is not known" + _NEXT,
    "dead_letter": "It was given up, as the dead letter {id}: {cause}.",
    "dead_letter.requeued": "{by} requeued the dead letter {letter_id}.",
    "dead_letter.discarded": "{by} discarded the dead letter {letter_id}.",
    "gone": "Here was {what}.",
}
"""By the names that programs know steps by; what comes after a colon is one of several ways."""
