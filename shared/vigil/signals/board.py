"""From an entry of the board to the signal that it gives, if any. Pure, and the same each time.

Neither arguments nor goals are copied: a signal tells that somebody is asked, or how far a job is,
and `subject` leads to it. An entry is told by itself, so what an entity passes through more than
once (a job's steps) gives no signal.
"""

from __future__ import annotations

from datetime import UTC

from ..actions import log as actions
from ..contracts import (
    Approval,
    BoardEntry,
    BoardTask,
    Circuit,
    Grant,
    GrantUse,
    Job,
    SignalSource,
    decode_board,
)
from ..contracts.board import (
    BoardAction,
    BoardBulletin,
    BoardGoal,
    BoardPreference,
    SourceFacts,
)
from ..contracts.board.vocabulary import GOALS, TASKS
from ..contracts.vocabulary import APPROVALS, JOBS
from ..errors import InvalidInput
from ..facts.shown import described, news_of
from ..subjects import Scope, SessionKey
from .draft import Signals


def read(source: SignalSource, subject: str, data: bytes) -> tuple[Signals, BoardEntry]:
    """Decode an entry of the board.

    Raises:
        InvalidInput: it can't be read, or isn't of the person whose subject it is on.
    """
    entry = decode_board(data)
    entity = entry.entity
    if isinstance(entity, Grant):
        raise InvalidInput("subject", "a grant is not told of before it's used")
    if isinstance(entity, BoardTask):
        return _of_kept(source, subject, entity, entity.worker or entity.session_key), entry
    if isinstance(entity, BoardGoal):
        return _of_kept(source, subject, entity, entity.session_key), entry
    if isinstance(entity, BoardPreference):
        session = entity.learned_from[-1].session_key if entity.learned_from else ""
        return _of_kept(source, subject, entity, session), entry
    if isinstance(entity, BoardAction):
        place = actions.place_of(entity)
        return _of_kept(source, subject, entity, entity.session_key, place), entry
    if isinstance(entity, Circuit | BoardBulletin | SourceFacts):
        newest = entity.newest if isinstance(entity, SourceFacts) else None
        return _of_kept(source, subject, entity, newest.session if newest else ""), entry
    key = SessionKey.parse(entity.session_key)
    if subject != key.board(str(entity.__struct_config__.tag), entity.id):
        raise InvalidInput("subject", f"{subject!r} is not that of {entity.id} of {key}")
    return Signals(key.scope, source, str(key)), entry


def _of_kept(
    source: SignalSource,
    subject: str,
    entity: BoardTask
    | BoardGoal
    | BoardPreference
    | BoardAction
    | Circuit
    | BoardBulletin
    | SourceFacts,
    session_key: str,
    place: str = "",
) -> Signals:
    whose, kind = Scope.of(entity.agent, entity.owner), str(entity.__struct_config__.tag)
    if subject != f"board.{whose.agent}.{whose.owner}.{kind}.{place or entity.id}":
        raise InvalidInput("subject", f"{subject!r} is not that of {entity.id}")
    return Signals(whose, source, session_key or None)


def asked(signals: Signals, entry: BoardEntry) -> None:
    """Tell that a person is asked, and how that ended."""
    approval = entry.entity
    if not isinstance(approval, Approval):
        return
    is_open = approval.state == "open"
    how = APPROVALS[approval.state].signal
    signals.add(
        "approval.requested" if is_open else "approval.decided",
        entry.at,
        f"The agent {how}" if is_open else f"A request {how}",
        caused_by=approval.caused_by or None,
        subject=approval.id,
        tool=approval.tool,
        risk=approval.risk,
        state=None if is_open else approval.state,
        expires_at=approval.expires_at if is_open else None,
        is_tainted=approval.is_tainted or None,
    )


def worked(signals: Signals, entry: BoardEntry) -> None:
    """Tell that a job began, and how it ended."""
    job = entry.entity
    if not isinstance(job, Job):
        return
    if job.status == "running" and job.plan is None:
        kind, text = "job.started", "A job begins"
    else:
        words = JOBS[job.status]
        kind, text = words.signal, f"A job {words.step}"
    if not kind:
        return
    failed = sum(1 for run in job.step_runs if run.error)
    signals.add(
        kind,
        entry.at,
        text,
        caused_by=None,
        subject=job.id,
        skill=job.skill or None,
        run=job.runs if job.runs > 1 else None,
        steps=len(job.step_runs) or None,
        failed_steps=failed or None,
    )


def used(signals: Signals, entry: BoardEntry) -> None:
    """Tell that a standing grant let a call run."""
    use = entry.entity
    if not isinstance(use, GrantUse):
        return
    signals.add(
        "grant.used",
        entry.at,
        f"A standing grant let {use.tool} run",
        caused_by=use.calls[-1] if use.calls else None,
        subject=use.id,
        tool=use.tool,
        uses=use.uses,
    )


def moved(signals: Signals, entry: BoardEntry) -> None:
    """Tell that a task was made, or moved; what else changes of one gives no signal."""
    task = entry.entity
    if not isinstance(task, BoardTask) or task.moved_at != entry.at:
        return
    words = TASKS[task.status]
    signals.add(
        words.signal,
        entry.at,
        f"A task {words.step}",
        caused_by=_cause(entry),
        subject=task.id,
        priority=task.priority,
        tries=task.tries or None,
        by=_by(entry),
        is_tainted=task.is_tainted or None,
    )


def pursued(signals: Signals, entry: BoardEntry) -> None:
    """Tell that a goal was made, or moved; what else changes of one gives no signal."""
    goal = entry.entity
    if not isinstance(goal, BoardGoal) or goal.moved_at != entry.at:
        return
    words = GOALS[goal.status]
    signals.add(
        words.signal,
        entry.at,
        f"A goal {words.step}",
        caused_by=_cause(entry),
        subject=goal.id,
        goal_kind=goal.goal_kind,
        priority=goal.priority,
        origin=goal.origin,
        by=_by(entry),
        is_tainted=goal.is_tainted or None,
    )


def learned(signals: Signals, entry: BoardEntry) -> None:
    """Tell that a preference was taught, or removed; its value is not told."""
    preference = entry.entity
    if not isinstance(preference, BoardPreference):
        return
    how = preference.learned_from[-1].how if preference.learned_from else None
    if preference.is_removed:
        kind, text = "preference.removed", "A preference was removed"
    elif preference.is_negative:
        kind, text = "preference.corrected", "The agent was corrected"
    else:
        kind, text = "preference.learned", "A preference was taught, or doubted"
    signals.add(
        kind,
        entry.at,
        text,
        caused_by=_cause(entry),
        subject=preference.id,
        category=preference.category,
        how=how,
        confidence=preference.confidence,
        by=_by(entry),
    )


def refreshed(signals: Signals, entry: BoardEntry) -> None:
    """Tell that a bulletin says something else."""
    bulletin = entry.entity
    if not isinstance(bulletin, BoardBulletin):
        return
    signals.add(
        "bulletin.refreshed",
        entry.at,
        "A bulletin says something new",
        caused_by=_cause(entry),
        subject=bulletin.id,
        made_by=bulletin.made_by,
        is_empty=bulletin.is_empty or None,
    )


def facts_changed(signals: Signals, entry: BoardEntry) -> None:
    """Tell that a fact is another than before, by its name and value: both out of closed sets."""
    source = entry.entity
    if not isinstance(source, SourceFacts):
        return
    for fact in news_of(source):
        text = described(fact, UTC, entry.at)
        if text:
            signals.add(
                "fact.changed",
                entry.at,
                f"Fact {text}",
                caused_by=_cause(entry),
                subject=source.id,
                name=fact.name,
                value=fact.value,
                was=fact.was or None,
            )


def acted(signals: Signals, entry: BoardEntry) -> None:
    """Tell that the agent did something by itself, how that ended, and how it was liked."""
    action = entry.entity
    if not isinstance(action, BoardAction):
        return
    if action.feedback is not None:
        kind, text = "action.judged", "A person said how they liked an action"
    elif action.outcome != "pending":
        kind, text = "action.ended", f"An action ended: {action.outcome}"
    else:
        kind, text = "action.taken", "The agent did something by itself"
    signals.add(
        kind,
        entry.at,
        text,
        caused_by=_cause(entry),
        subject=action.id,
        type=action.type,
        goal=action.goal or None,
        outcome=action.outcome,
        is_good=action.feedback.is_good if action.feedback is not None else None,
        is_tainted=action.is_tainted or None,
    )


def tripped(signals: Signals, entry: BoardEntry) -> None:
    """Tell that a circuit opened, and that it closed: once each, however many trials fail."""
    circuit = entry.entity
    if not isinstance(circuit, Circuit) or circuit.state == "half_open":
        return
    is_open = circuit.state == "open"
    if is_open and circuit.opened_at != circuit.changed_at:
        return  # opened anew
    signals.add(
        "circuit.opened" if is_open else "circuit.closed",
        entry.at,
        f"The circuit of {circuit.component} opened: {circuit.reason}"
        if is_open
        else f"The circuit of {circuit.component} closed",
        caused_by=None,
        subject=circuit.id,
        component=circuit.component,
        failures=circuit.failures or None,
        until=circuit.until,
        by=_by(entry),
    )


def _cause(entry: BoardEntry) -> str | None:
    return (entry.change.cause if entry.change is not None else "") or None


def _by(entry: BoardEntry) -> str | None:
    return entry.change.by if entry.change is not None else None
