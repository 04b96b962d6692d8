"""Cycles: an agent keeps up with the world while nobody watches (SPEC C-7). Pure.

A cycle works as any session does. Where it would end, its loop goes on for one more question: what
was checked, found and put off, and what is to be looked at again, as JSON. That report ends it,
whatever becomes of the question: without an answer that is one, it's what the cycle said last. It
is kept in memory, and the ledger has it for the next cycle. A cycle says nothing to anybody.
"""

from __future__ import annotations

from typing import Final

from vigil.contracts import Row, TextBlock
from vigil.contracts.board import CycleReport
from vigil.errors import InvalidInput

from ...thought.model import ModelAnswer, ModelError
from .. import conclusion, loops
from ..context.offers import TRUNCATING, cut
from ..draft import Draft
from ..work import findings
from . import report as reports

PURPOSE: Final = "report"
"""What the loop of a cycle is marked with once only its report is asked for."""
ASKED_MAX: Final = 2
"""How often the model is asked: a second time with what was wrong with the first."""
ANSWER_BYTES_MAX: Final = 4 * 1024
"""Of an answer that is none: it's shown to the model again."""


def wrap_up(draft: Draft, text: str) -> None:
    """Have the model asked what came of the cycle, instead of ending it.

    Args:
        text: its last words.
    """
    draft.note("cycle_worked", f"{draft.loop.calls} model calls; now it reports")
    draft.update_loop(purpose=PURPOSE, calls=0, retries=0, unsaid=text)
    draft.outcome = "continued"


def conclude(draft: Draft, answer: ModelAnswer) -> None:
    """Take the answer as the report and end the cycle, or ask once more."""
    draft.update_loop(calls=draft.loop.calls + 1, retries=0)
    draft.usage.append(answer.usage)
    sway = draft.sway
    draft.was_swayed = draft.was_swayed or sway.is_outside
    text = "".join(block.text for block in answer.blocks if isinstance(block, TextBlock))
    try:
        if answer.stop_reason == "refusal" or answer.stop_reason in TRUNCATING:
            raise InvalidInput("report", f"the answer is none: {answer.stop_reason}")
        report = reports.read(text, draft.moment.now, sway)
    except InvalidInput as error:
        _refuse(draft, text, error.reason)
        return
    _end(draft, report)


def _refuse(draft: Draft, text: str, reason: str) -> None:
    draft.note("report_refused", reason)
    if draft.loop.calls >= ASKED_MAX:
        _end(draft, _unreported(draft))
        return
    draft.row_text("assistant", "agent", cut(text.strip(), ANSWER_BYTES_MAX) or "(nothing)")
    draft.row_text("user", "system", reason)
    draft.outcome = "continued"


def fail(draft: Draft, error: ModelError) -> None:
    """Have it tried again, as any step; at last end the cycle without a report: what it did is
    done."""
    if error.is_retryable and draft.loop.retries < draft.policy.retries_max:
        conclusion.fail(
            draft,
            error.reason,
            is_retryable=True,
            retry_after_s=error.retry_after_s,
            is_of_model=error.is_of_model,
        )
        return
    draft.note("report_missing", error.reason)
    _end(draft, _unreported(draft))


def _unreported(draft: Draft) -> CycleReport:
    """Return what is known without a report: the last words."""
    words = draft.loop.unsaid.splitlines()
    return CycleReport(found=reports.short(words), is_tainted=draft.sway.is_outside)


def _end(draft: Draft, report: CycleReport) -> None:
    findings.save(draft, reports.words_of(report), draft.sway, type_="summary")
    draft.report = report
    loops.end(draft, "silent")


def tries(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Return the refused answer with its reason, if there is one: the newest rows are those.

    Rows of a cycle are the model's, results of tools, and at the end what the core says of a
    report; nothing else in it comes from the system.
    """
    is_refused = bool(rows) and rows[-1].source == "system" and rows[-1].role == "user"
    return rows[-2:] if is_refused else ()
