"""What a person reads before they decide on a call (SPEC X-2). Pure.

The arguments were written by a model, perhaps after somebody's dictation, to be read by a person
who has to trust their eyes. So each stands on a line of its own behind a bar, as JSON, and what
can't be seen, or changes how the rest is seen, is written out as ``\\uXXXX``: nothing can pose as
another line, hide, or turn around the order of what is shown.
"""

from __future__ import annotations

import json
from typing import Any, Final

from vigil.contracts import AcceptedCall, Approval, Control, Event
from vigil.contracts.board.approval import QUESTION
from vigil.contracts.tools import RISK_MEANINGS
from vigil.texts import rough
from vigil.texts.exact import arguments
from vigil.texts.glyphs import visible

from ..draft import INSTANT

SHOWN_MAX: Final = 4_000
"""Characters of the arguments that a message shows."""
PARTS_MAX: Final = 8
"""Messages that show the arguments of one request; what takes more isn't accepted by a word."""
CONTINUED: Final = "| … "
"""Begins what goes on with the arguments of the message before."""
TEXT_LENGTH_MAX: Final = 16_000
"""Characters of a person's answer, or of their reason."""
QUESTION_LENGTH_MAX: Final = 300
"""Characters of a question that a person is told of at home, where it may be one of several."""
TITLE_LENGTH_MAX: Final = 100
"""Characters of the line that names a call."""


def request(approval: Approval) -> str:
    """Return the message that asks a person for leave."""
    shown = arguments(approval.input)
    left_out = len(shown) - SHOWN_MAX
    if left_out > 0:
        shown = (
            f"{shown[:SHOWN_MAX]}…\n({left_out} more characters are not shown here. Read all of "
            f"it before you accept: vigil approvals show {approval.id})"
        )
    return f"{_head(approval)}\n{shown}\n{_how(approval)}"


def is_whole(approval: Approval) -> bool:
    """Whether the message that asks for leave shows all of the arguments."""
    return len(arguments(approval.input)) <= SHOWN_MAX


def parts(approval: Approval) -> list[str]:
    """Return the messages that show a request whole; empty: it would take too many.

    Each goes on behind a bar, so that no part of an argument begins a line of its own.
    """
    shown = arguments(approval.input)
    pieces = [shown[at : at + SHOWN_MAX] for at in range(0, len(shown), SHOWN_MAX)]
    if len(pieces) > PARTS_MAX:
        return []
    first, *rest = pieces
    texts = [f"{_head(approval)}\n{first}", *(f"{CONTINUED}{piece}" for piece in rest)]
    return [*texts[:-1], f"{texts[-1]}\n{_how(approval)}"]


def _head(approval: Approval) -> str:
    if approval.wanted is not None:
        return (
            f"{visible(approval.tool)} goes on once you answered its server, which is no part of "
            f"me. It says, exactly:"
        )
    risk = f"{approval.risk}: {RISK_MEANINGS[approval.risk]}"
    return (
        f"I need your approval to call {visible(approval.tool)} ({risk}).\n"
        f"Why I ask: {visible(approval.reason)}.\n"
        f"With exactly these arguments:"
    )


def _how(approval: Approval) -> str:
    if approval.wanted is not None:
        fields = len(approval.wanted.form.get("properties", {}))
        by_word = {0: f"accept {approval.name}", 1: f"answer {approval.name} TEXT"}
        how = by_word.get(fields, f"vigil approvals edit {approval.id} --input JSON")
        return (
            f"What you say goes to that server. To answer: {how}. Or: reject {approval.name}\n"
            f"It expires at {approval.expires_at:{INSTANT}}."
        )
    return (
        f"To decide, say: accept {approval.name}, or: reject {approval.name}\n"
        f"(or: vigil approvals accept {approval.id}; edit changes the arguments). "
        f"It expires at {approval.expires_at:{INSTANT}}."
    )


def at_home(approval: Approval, *, is_quotable: bool) -> str:
    """Return what a person is told of a request that no conversation asks.

    Args:
        is_quotable: whether nothing of the arguments is from outside; else it's said how long they
            are, about.
    """
    size = rough.length(json.dumps(approval.input, ensure_ascii=False))
    of = f", with arguments of {size}"
    if is_quotable:
        of = f": {title(approval.tool, approval.input)}"
    return (
        f"I need your approval to call {visible(approval.tool)} ({approval.risk}: "
        f"{RISK_MEANINGS[approval.risk]}){of}. I went on without it. "
        f"To decide, say: accept {approval.name}, or: reject {approval.name} "
        f"(all of it: vigil approvals show {approval.id})"
    )


def question_at_home(approval: Approval, *, is_quotable: bool) -> str:
    """Return what a person is told of a question that no conversation asks.

    Args:
        is_quotable: whether nothing of it is from outside; else it's said how long it is, about.
    """
    asked = " ".join(str(approval.input.get("question", "")).split())
    of = f"of {rough.length(asked)}"
    if is_quotable:
        is_cut = len(asked) > QUESTION_LENGTH_MAX
        of = f": {visible(asked[:QUESTION_LENGTH_MAX])}{'…' if is_cut else ''}"
    return (
        f"I have a question{'' if is_quotable else ' '}{of}\n"
        f"I went on without an answer. To answer, say: answer {approval.name} TEXT "
        f"(all of it: vigil approvals show {approval.id})"
    )


def expired(approval: Approval, *, is_quotable: bool) -> str:
    """Return the line for a request that nobody decided, and nobody waited for."""
    if approval.is_question:
        return f"Nobody answered in time what {approval.name} asked."
    called = title(approval.tool, approval.input) if is_quotable else visible(approval.tool)
    return f"Nobody decided in time on {called}, so it was not run."


def errand(
    call: AcceptedCall,
    content: str,
    session_key: str,
    *,
    is_quotable: bool,
    is_error: bool | None = None,
) -> str:
    """Return what a person is told of a call that they accepted and that was run apart.

    Args:
        is_quotable: whether nothing of it is from outside.
        is_error: what its result says of itself; None: nobody knows.
    """
    verb = "answered" if call.tool == QUESTION else "accepted"
    if is_quotable:
        return f"{title(call.tool, call.input)}, which you {verb}: {content}"
    how = {None: "is over", False: "is done", True: "failed"}[is_error]
    return (
        f"{visible(call.tool)}, which you {verb}, {how}. What was said of it may be from outside: "
        f"vigil tail session {session_key}"
    )


def question(approval: Approval) -> str:
    """Return the message that asks a person something, for a session that they don't talk to."""
    return (
        f"A task asks you: {visible(str(approval.input.get('question', '')))[:SHOWN_MAX]}\n"
        f"To answer, say: answer {approval.name} TEXT\n"
        f"(or: vigil approvals answer {approval.id} TEXT). "
        f"It expires at {approval.expires_at:{INSTANT}}."
    )


def title(tool: str, given: dict[str, Any], length_max: int = TITLE_LENGTH_MAX) -> str:
    """Name a call in a line.

    >>> title("shell", {"command": "ls"})
    'shell {"command": "ls"}'
    """
    text = _called(tool, given)
    return text if len(text) <= length_max else f"{text[: length_max - 1]}…"


def is_in_title(tool: str, given: dict[str, Any]) -> bool:
    """Whether the line that names a call has all of it."""
    return len(_called(tool, given)) <= TITLE_LENGTH_MAX


def _called(tool: str, given: dict[str, Any]) -> str:
    return f"{visible(tool)} {visible(json.dumps(given, ensure_ascii=False))}"


# ---------------------------------------------------------------- what the model reads


def outcome(event: Event, *, is_late: bool) -> tuple[str, bool]:
    """Return what the model is told of the end of a request, and whether that is an error.

    `is_late`: nobody decided in time; a verdict that came after that doesn't count.
    """
    decision = event.payload.decision if isinstance(event, Control) else None
    if is_late or decision is None:
        return "Nobody decided in time, so it was not run.", True
    if decision.verdict == "accept":
        return "The person accepted it, and it is done.", False
    if decision.verdict == "edit":
        return f"The person changed it, and that is done: {json.dumps(decision.input)}", False
    text = bounded(decision.text)
    if decision.verdict == "answer":
        return f"It was not run. The person answered: {text}", False
    return f"The person rejected it{f': {text}' if text else '.'}", True


def bounded(text: str) -> str:
    """Cut a person's words to what a record holds."""
    text = text.strip()
    return text if len(text) <= TEXT_LENGTH_MAX else f"{text[: TEXT_LENGTH_MAX - 1]}…"
