"""What a turn set in motion, in a sentence each. Pure."""

from __future__ import annotations

from typing import Final, assert_never

from vigil.contracts.session_kinds import SESSION_KINDS
from vigil.contracts.vocabulary import APPROVALS, JOBS

from .deeds import CalledOff, Deed, Ran, Reported, Requested, Started, Working
from .voice import Voice, instant, quote

_REPORTS: Final = {
    "running": "It told who started it how it goes",
    "asking": "It told who started it that it waits for a person",
    "done": "It told its result to who started it",
    "failed": "It told who started it that it failed",
}


def deed_words(deed: Deed, voice: Voice) -> tuple[str, str]:
    """Return the name and the sentence of a deed."""
    match deed:
        case Started():
            return f"{deed.kind}.started", f"{_began(deed.kind)}: {quote(deed.prompt)}"
        case CalledOff():
            what = "the session behind " if deed.is_child else ""
            why = f": {deed.reason}" if deed.reason else ""
            return "call.cancelled", f"It called off {what}{deed.tool}{why}."
        case Reported():
            taint = "; it holds untrusted content" if deed.is_tainted else ""
            return f"parent.{deed.state}", f"{_REPORTS[deed.state]}: {quote(deed.text)}{taint}"
        case Requested():
            return f"approval.{deed.state}", _request(deed, voice)
        case Working():
            return f"job.{deed.status}", _job(deed)
        case _:
            assert_never(deed)


def _began(kind: str) -> str:
    """Say that a session was started; of a kind that isn't known any more just that."""
    known = SESSION_KINDS.get(kind)
    return known.started if known is not None and known.started else f"It started a {kind}"


def is_verdict(deed: Deed) -> bool:
    """Whether a deed is how a request ended: what a turn does about that comes after it."""
    return isinstance(deed, Requested) and deed.state != "open"


def _request(asked: Requested, voice: Voice) -> str:
    if asked.tool == "ask_user" and asked.state == "open":
        return f"It asks {voice.they}: {quote(asked.text)}, until {instant(asked.expires_at)}."
    text = APPROVALS[asked.state].step.format(
        they=voice.they, They=voice.start, tool=asked.tool, risk=asked.risk, reason=asked.reason
    )
    if asked.state == "open":
        return f"{text}: {quote(asked.text)}, until {instant(asked.expires_at)}."
    if asked.state == "edited":
        return f"{text}: {quote(asked.text)}"
    return f"{text}: {quote(asked.said)}" if asked.said else f"{text}."


def _job(job: Working) -> str:
    title = f"The job {quote(job.title)}"
    steps = [*map(_step, job.ran)]
    if job.status == "running" and not job.steps:
        return f"{title} began, and is planned."
    if job.is_planned:
        steps.insert(0, f"It planned {_count(job.steps)}: {quote(job.text)}.")
    if job.status == "running":
        return " ".join(steps)
    if job.status == "succeeded":
        failed = f"; {job.failed} of them failed" if job.failed else ""
        return " ".join([*steps, f"{title} is done: {_count(job.run)}{failed}."])
    why = f": {job.text}" if job.text else ""
    return " ".join([*steps, f"{title} {JOBS[job.status].step}{why}."])


def _step(ran: Ran) -> str:
    step = f"Step {ran.number}, {ran.tool},"
    if not ran.is_over:
        return f"{step} began."
    return f"{step} {'failed' if ran.is_failed else 'is done'}: {quote(ran.text)}."


def _count(steps: int) -> str:
    return "1 step" if steps == 1 else f"{steps} steps"
