"""Cycles: an agent keeps up with the world while nobody watches (SPEC C-7). Pure.

A cycle works as any session does. Where it would end, its loop goes on for one more question: what
was checked, found and put off, and what is to be looked at again, as JSON. That report ends it. The
slot and the ledger have it for the next cycle; memory is given what it found with what it found it
in (`grounds`), as the rest would be recalled as if it were known. Without a report nothing is
remembered: of a model that couldn't be asked for it the ledger alone has what the cycle said last;
of one whose answers were refused, nothing, as it said that. A cycle says nothing to anybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vigil.contracts.board import CycleReport

from ...model import ModelAnswer, ModelError
from .. import conclusion
from ..draft import Draft
from ..tools import formed_answer
from ..tools.formed_answer import Unusable
from ..work import findings
from ..work.loop_end import end_loop
from . import grounds
from . import report as reports

PURPOSE: Final = "report"
"""What the loop of a cycle is marked with once only its report is asked for."""


def wrap_up(draft: Draft, text: str) -> None:
    """Have the model asked what came of the cycle, instead of ending it.

    Args:
        text: its last words.
    """
    if draft.loop.purpose == draft.policy.profile.purpose:
        note_work(draft)
    draft.update_loop(purpose=PURPOSE, calls=0, retries=0, unsaid=text)
    draft.outcome = "continued"


def note_work(draft: Draft) -> None:
    """Note what the cycle took, before it is asked what came of it."""
    draft.note("cycle_worked", f"{draft.loop.calls} model calls; now it reports")


def conclude(draft: Draft, answer: ModelAnswer, shown: Mapping[str, str]) -> None:
    """Take the answer as the report and end the cycle, or ask once more.

    Args:
        shown: what the cycle was shown, as of `grounds.shown`.
    """
    now, sway = draft.moment.now, draft.sway
    report = formed_answer.take(draft, answer, "report", lambda text: reports.read(text, now, sway))
    if not isinstance(report, Unusable):
        _keep(draft, report, shown)
        _end(draft, report)
        return
    draft.note("report_refused", report.reason)
    if report.is_last:
        _end(draft, CycleReport())


def fail(draft: Draft, error: ModelError) -> None:
    """Have it tried again, as any step; at last end the cycle without a report: what it did is
    done."""
    if conclusion.tries_again(draft, error):
        return
    draft.note("report_missing", error.reason)
    _end(draft, _unreported(draft))


def _keep(draft: Draft, report: CycleReport, shown: Mapping[str, str]) -> None:
    """Have memory keep what was found, with what it was found in; of what content from outside had
    a part in, all: nobody is told that unasked."""
    kept = report
    if not report.is_tainted:
        kept = CycleReport(found=grounds.grounded(report.found, shown))
    findings.save(draft, reports.words_of(kept), draft.sway, type_="summary")


def _unreported(draft: Draft) -> CycleReport:
    """Return what is known without a report: the last words."""
    words = draft.loop.unsaid.splitlines()
    return CycleReport(found=reports.short(words), is_tainted=draft.sway.is_outside)


def _end(draft: Draft, report: CycleReport) -> None:
    draft.report = report
    end_loop(draft, "silent")
