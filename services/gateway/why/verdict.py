"""The end of a story: one word for programs, one plain sentence for people. Pure."""

from __future__ import annotations

from typing import Final

from vigil.contracts import (
    SOCKET,
    Attempt,
    Control,
    DeadLetterEnd,
    Dispatch,
    External,
    Note,
    Receipt,
    Said,
    TimerFired,
    ToolResultEvent,
)
from vigil.contracts.notes import note_words
from vigil.contracts.vocabulary import APPROVALS, ENDINGS, JOBS, OUTCOMES, Ending

from .cutting import clip
from .deeds import Reported, Requested, Working
from .facts import Gone, LetterFact, TurnFact
from .telling import SendStory, Story
from .voice import Voice, instant, quote

End = tuple[Ending, str]

_OVER: Final[End] = ("done", "The wait was over, and what waited for that went on.")
_GONE: Final[End] = ("unknown", "The log doesn't hold what decided it any more.")


def verdict_of(story: Story, voice: Voice) -> End:
    """Return the word and the sentence that end a story."""
    word, text = _end(story, voice)
    return word, voice.tell(text)


def _end(story: Story, voice: Voice) -> End:
    if story.kind == "dead_letter":
        return _letter(story, voice)
    if story.kind == "approval":
        return _request(story, voice)
    if story.sends:
        return _sends(story, voice)
    if story.timer_id is not None:
        return _timer(story, story.timer_id, voice)
    return _turn(story, voice)


# ---------------------------------------------------------------- messages


def _sends(story: Story, voice: Voice) -> End:
    """Tell the end of what was to be said; of several the first that went wrong counts."""
    ends = [_send(send, story, voice) for send in story.sends]
    wrong = [end for end in ends if end[0] not in ("said", "sent", "delivered")]
    if not wrong or len(ends) == 1:
        word, text = ends[-1]
        return word, text if len(ends) == 1 else f"{text} That is {len(ends)} messages in all."
    word, text = wrong[0]
    return word, f"{text} That is one of {len(ends)} messages."


def _send(send: SendStory, story: Story, voice: Voice) -> End:
    last = send.last
    said = send.said
    match last:
        case None:
            return "pending", "It is decided, and delivery has not said it yet."
        case Said() if last.channel == SOCKET:
            return "said", f"It was said{_because(send, story, voice)}."
        case Said():
            return "pending", f"It is in the transcript, and will go to {quote(last.channel)}."
        case Receipt():
            return _receipt(last, send, story, voice)
        case Dispatch():
            who = f" again, because {last.requeued_by} ordered it" if last.requeued_by else ""
            return "pending", f"{_so_far(said)}it waits for the channel {quote(last.channel)}{who}."
        case Attempt():
            return _attempt(last, said)


def _so_far(said: Said | None) -> str:
    return "It is in the transcript, and " if said is not None else "It isn't said yet: "


def _attempt(attempt: Attempt, said: Said | None) -> End:
    channel = f"the channel {quote(attempt.channel)}"
    if attempt.state == "begun":
        return "pending", f"{_so_far(said)}attempt {attempt.number} at {channel} is not over."
    again = f"; it is tried again at {instant(attempt.next_at)}" if attempt.next_at else ""
    if attempt.state == "unknown" and not again:
        return "ambiguous", f"{_so_far(said)}nobody knows whether {channel} took it."
    why = f": {clip(attempt.reason)}" if attempt.reason else ""
    return "retrying", f"{_so_far(said)}{channel} has not taken it yet{why}{again}."


def _receipt(receipt: Receipt, send: SendStory, story: Story, voice: Voice) -> End:
    if receipt.outcome == "void":
        return "void", f"It was not said: {voice.they} wrote before it was."
    if receipt.outcome in ("said", "sent", "delivered"):
        took = "" if receipt.outcome == "said" else f", and {_channel(send)} took it"
        return receipt.outcome, f"It was said{took}{_because(send, story, voice)}."
    why = f": {clip(receipt.reason)}" if receipt.reason else ""
    if send.said is None:
        return receipt.outcome, f"It was not said{why}."
    if receipt.outcome == "dropped":
        text = f"was not sent to {_channel(send)}{why}."
    elif receipt.outcome == "ambiguous":
        text = f"whether {_channel(send)} took it is not known{why}; it isn't sent again by itself."
    else:
        text = f"{_channel(send)} did not take it{why}.{_letters(send)}"
    return receipt.outcome, f"It is in the transcript, but {text}"


def _channel(send: SendStory) -> str:
    for fact in reversed(send.trail):
        if isinstance(fact.body, Dispatch | Attempt):
            return f"the channel {quote(fact.body.channel)}"
    if send.said is not None and send.said.channel != SOCKET:
        return f"the channel {quote(send.said.channel)}"
    return "the channel"


def _letters(send: SendStory) -> str:
    letters = [f.body for f in send.trail if isinstance(f.body, LetterFact)]
    return f" It is the dead letter {letters[-1].id}." if letters else ""


def _because(send: SendStory, story: Story, voice: Voice) -> str:
    """Tell why it was said: what began it, and that the gates agreed."""
    is_autonomous = send.payload.is_autonomous if send.payload is not None else (
        send.said is not None and send.said.is_autonomous
    )  # fmt: skip
    if not is_autonomous:
        return f", as the answer to what {voice.they} wrote" if send.payload is not None else ""
    is_timed = any(
        isinstance(f.body, TimerFired) and f.body.payload.kind == "follow_up" for f in story.facts
    )
    if send.payload is not None and not send.payload.is_voidable:
        is_result = _has_result(story, send.payload.caused_by)
        how = "this is what came of it" if is_result else "it came due"
        return f": {voice.they} had asked for it, and {how}"
    if is_timed:
        return ": it came due as planned, and the gates let it through"
    return ": the agent decided to by itself, and the gates let it through"


# ---------------------------------------------------------------- follow-ups and turns


def _timer(story: Story, timer_id: str, voice: Voice) -> End:
    if story.focus is None or not isinstance(story.focus.body, TurnFact):
        return _GONE
    turn = story.focus.body
    note = next((n for n in reversed(turn.notes) if n.subject == timer_id), None)
    if note is not None and note.code == "void":
        return "void", f"It was not said: {_spoke(note, voice)}."
    if note is not None and note.code != "held":
        return _noted(note)
    return _planned(turn, timer_id, is_held=note is not None) or _turn(story, voice)


def _planned(turn: TurnFact, timer_id: str, *, is_held: bool) -> End | None:
    """Tell what the plans of the last turn about a follow-up mean, if it has any."""
    plans = [plan for plan in turn.plans if plan.timer_id == timer_id]
    if not plans:
        return None
    when = instant(plans[-1].fire_at)
    if is_held:
        return "held", f"It was held back, and is planned for {when}."
    if any(closed == timer_id for closed, _ in turn.cancels):
        return "replaced", f"It was replaced by a later plan of the same name, for {when}."
    return "pending", f"It is planned for {when}."


def _spoke(note: Note, voice: Voice) -> str:
    if note.text == "the person spoke first":
        return f"{voice.they} wrote first, and that ends what the agent had planned by itself"
    return note.text.rstrip(".")


def _turn(story: Story, voice: Voice) -> End:
    focus = story.focus
    if focus is None:
        return _GONE
    if isinstance(focus.body, Gone):
        return "unknown", f"All that is left of it is {focus.body.what}."
    if not isinstance(focus.body, TurnFact):
        return "pending", "It is stored, and no turn has taken it up yet."
    return _ended(story, focus.body, voice)


def _ended(story: Story, turn: TurnFact, voice: Voice) -> End:
    is_elsewhere = _is_ended_elsewhere(story, turn)
    if is_elsewhere and _is_result(story):
        return "done", "It was the answer of a tool, and the agent went on with it."
    if is_elsewhere and _is_deadline(story, story.id):
        return _OVER
    if (end := _told_to_others(turn, voice)) is not None:
        return end
    telling = [note for note in turn.notes if _is_telling(note, turn, is_elsewhere=is_elsewhere)]
    if not telling:
        return _plain(story, turn)
    if telling[-1].code == "void":
        return "void", _voided(story, telling[-1], voice)
    return _noted(telling[-1])


def _told_to_others(turn: TurnFact, voice: Voice) -> End | None:
    """Tell what a turn told to who started its session, how its job ended, or what it awaits."""
    for deed in reversed(turn.deeds):
        if isinstance(deed, Working) and JOBS[deed.status].signal:
            job, why = JOBS[deed.status], f": {deed.text}" if deed.text else ""
            return job.ending, f"The job {job.step}{'' if job.ending == 'done' else why}."
        if isinstance(deed, Reported) and deed.state == "done":
            return "done", "It is done, and its result was told to who started it."
        if isinstance(deed, Reported) and deed.state == "failed":
            return "failed", f"It failed: {deed.text}"
        if isinstance(deed, Requested) and deed.state == "open" and turn.outcome == "continued":
            return _waits(deed, voice)
    return None


def _plain(story: Story, turn: TurnFact) -> End:
    """Tell the end of a turn that no note explains."""
    event_id = "" if turn.event is None else turn.event.id
    if turn.outcome in ("begun", "queued") and _is_deadline(story, event_id):
        return _OVER
    words = OUTCOMES[turn.outcome]
    return words.ending, words.summary


def _is_deadline(story: Story, event_id: str) -> bool:
    """Tell whether an event is a deadline, which has no end but that it came."""
    return any(
        isinstance(f.body, TimerFired)
        and f.body.payload.kind == "deadline"
        and f.body.id == event_id
        for f in story.facts
    )


def _voided(story: Story, note: Note, voice: Voice) -> str:
    """Tell why nothing was said: what came from outside is no plan, and it isn't forgotten."""
    if any(isinstance(f.body, External) and f.body.id == note.subject for f in story.facts):
        return f"Nothing was said about it: {voice.they} wrote first, and the answer knows of it."
    return f"It was not said: {_spoke(note, voice)}."


def _is_ended_elsewhere(story: Story, turn: TurnFact) -> bool:
    """Tell whether the turn about another event ended the exchange that is asked about."""
    is_other = turn.event is not None and turn.event.id != story.id
    return is_other and story.id in turn.ended


def _is_result(story: Story) -> bool:
    """Tell whether a tool's result is asked about."""
    return _has_result(story, story.id)


def _has_result(story: Story, id_: str) -> bool:
    """Tell whether the event of that id is a result of a call or a session."""
    return any(isinstance(f.body, ToolResultEvent) and f.body.id == id_ for f in story.facts)


def _is_telling(note: Note, turn: TurnFact, *, is_elsewhere: bool) -> bool:
    """Tell whether a note explains the outcome of its turn: others tell of something else."""
    if not is_elsewhere and turn.outcome in ("answered", "continued", "begun", "queued"):
        # What a message voids or cancels besides isn't what became of the message.
        return False
    return note_words(note.code).ending is not None


def _noted(note: Note) -> End:
    words, why = note_words(note.code), note.text.rstrip(".")
    if words.ending is None:
        return "unknown", f"{why[:1].upper()}{why[1:]}."
    start = ENDINGS[words.ending].start
    return words.ending, (words.last or f"{start}: {{text}}.").format(text=why)


# ---------------------------------------------------------------- requests to a person


def _request(story: Story, voice: Voice) -> End:
    deeds = story.focus.body.deeds if story.focus and isinstance(story.focus.body, TurnFact) else ()
    found = [deed for deed in deeds if isinstance(deed, Requested) and deed.id == story.id]
    if not found:
        return _GONE
    request = found[-1]
    if request.state == "open":
        return _waits(request, voice)
    decisions = (
        fact.body.payload.decision for fact in story.facts if isinstance(fact.body, Control)
    )
    by = [one.by for one in decisions if one is not None and one.approval_id == story.id]
    who = _who(by[-1], voice) if by else voice.start
    words = APPROVALS[request.state]
    return words.ending, words.summary.format(Who=who, They=voice.start)


def _waits(request: Requested, voice: Voice) -> End:
    words = APPROVALS["open"]
    return words.ending, words.summary.format(
        they=voice.they, tool=request.tool, until=instant(request.expires_at)
    )


# ---------------------------------------------------------------- dead letters


def _letter(story: Story, voice: Voice) -> End:
    letter = next((f.body for f in story.facts if isinstance(f.body, LetterFact)), None)
    if story.sends:
        return _sends(story, voice)
    if letter is None:
        return _GONE
    ends = [f.body for f in story.facts if isinstance(f.body, DeadLetterEnd)]
    since = f" {_who(ends[-1].by, voice)} {ends[-1].action} it." if ends else ""
    return "failed", f"The {letter.service} could not use it: {letter.cause}.{since}"


def _who(user: str, voice: Voice) -> str:
    return voice.start if user == voice.person else user
