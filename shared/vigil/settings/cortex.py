"""What agents do by themselves: cycles (SPEC C-7), bulletins (C-2), summaries (M-6); and how what
stands on the board is dealt with."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

import msgspec

from ..fields.section import Section

CYCLE_S_MIN: Final = 300
"""A cycle oftener costs more than it finds (SPEC C-7)."""
CYCLE_S_MAX: Final = 7 * 86_400
Turns = Annotated[int, msgspec.Meta(ge=1, le=500)]
Shown = Annotated[int, msgspec.Meta(ge=0, le=200)]


class Cortex(Section, frozen=True, kw_only=True):
    autonomy_enabled: bool = True
    """Whether agents keep up with the world by themselves, where `autonomy.enabled` and
    `agent.authority` let them."""
    autonomy_interval_secs: Annotated[int, msgspec.Meta(ge=CYCLE_S_MIN, le=CYCLE_S_MAX)] = 1800
    """How often it's looked whether there is anything new; without, no model is asked."""
    autonomy_look_secs: Annotated[int, msgspec.Meta(ge=0, le=CYCLE_S_MAX)] = 3600
    """How often a cycle looks at each of `agent.looks` that says nothing else, news or not; 0: only
    when a cycle begins for another reason."""
    autonomy_role_secs: Annotated[int, msgspec.Meta(ge=0, le=CYCLE_S_MAX)] = 4 * 3600
    """How often one looks after what a person wrote into `ROLE.md`; 0: likewise."""
    autonomy_max_turns: Annotated[int, msgspec.Meta(ge=1, le=100)] = 15
    """Model calls of a cycle."""
    autonomy_max_workers: Annotated[int, msgspec.Meta(ge=0, le=20)] = 3
    """Workers and readers of a cycle at a time."""
    autonomy_tasks_require_approval: bool = True
    """Tasks that a cycle makes wait for the person, whatever `tasks.approval` says."""
    autonomy_findings_shown: Annotated[int, msgspec.Meta(ge=0, le=50)] = 10
    """Findings of earlier cycles that a cycle is shown, the newest, and as many memories of since
    the one before."""
    autonomy_timeout_s: Annotated[int, msgspec.Meta(ge=60, le=3600)] = 1800
    """How long a cycle may take."""
    worker_max_turns: Turns = 50
    """Model calls of a worker."""
    branch_max_turns: Turns = 10
    """Of a branch."""
    reader_max_turns: Turns = 20
    """Of a reader."""
    errand_max_turns: Turns = 5
    """Of who runs a call that was accepted after its session had gone on."""
    cron_max_turns: Turns = 30
    """Of a run of the timetable."""
    cron_max_workers: Annotated[int, msgspec.Meta(ge=0, le=20)] = 3
    """Workers, readers and branches of a run at a time."""
    cron_findings_shown: Annotated[int, msgspec.Meta(ge=0, le=50)] = 15
    """Results of earlier runs, the newest, that a run is shown whose row remembers them, and as
    much of what else they kept."""
    cron_extracted_max: Annotated[int, msgspec.Meta(ge=0, le=20)] = 5
    """Memories that such a run keeps beside its result: after its end one call of its model, or of
    the cheap tier's, is asked for what else it was shown that is worth it; 0: it isn't."""
    fact_bits_per_day: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 512
    """What the facts of a row may tell a UTC day, in bits; beyond that they are left out."""
    bulletin_interval_secs: Annotated[int, msgspec.Meta(ge=CYCLE_S_MIN, le=CYCLE_S_MAX)] = 3600
    """How often it's looked whether a bulletin has to say something else."""
    bulletin_synthesis: bool = True
    """Whether a model makes a text of what is known when that changed; else it's listed."""
    bulletin_max_words: Annotated[int, msgspec.Meta(ge=50, le=5000)] = 1500
    """Words of that text."""
    summary_interval_secs: Annotated[int, msgspec.Meta(ge=CYCLE_S_MIN, le=CYCLE_S_MAX)] = 3600
    """How often it's looked whether memory merged notes into summaries."""
    summary_rewriting: bool = True
    """Whether a model writes such summaries anew; else they stay notes, one below the other."""


class BulletinSection(Section, frozen=True, kw_only=True):
    """How much of each kind is in a bulletin, or given to the model that makes its text."""

    identity: Shown = 15
    """Memories of who the person is."""
    preferences: Shown = 10
    """Of how they like things."""
    decisions: Shown = 10
    """Of what was decided."""
    important: Shown = 10
    """Others, the most important first."""
    facts: Shown = 15
    """Of facts."""
    events: Shown = 10
    """Of what happened."""
    observations: Shown = 5
    """Of what comes up again and again."""
    recent: Shown = 15
    """The newest of those that are in none of the above."""
    goals: Shown = 10
    """Goals that are pursued, the most important first."""


class Approvals(Section, frozen=True, kw_only=True):
    expires_s: Annotated[float, msgspec.Meta(ge=1, le=30 * 86400)] = 86400.0
    """An unanswered request is then refused."""
    open_max: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    """Open requests per session."""


class Tasks(Section, frozen=True, kw_only=True):
    approval: bool = True
    """A task that an agent makes waits for the person; one from outside content always does."""


class Goals(Section, frozen=True, kw_only=True):
    max: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    """Active goals of a person's, of all agents together; beyond, none is set or resumed. What is
    above it already goes on."""


class Preferences(Section, frozen=True, kw_only=True):
    decay_days: Annotated[int, msgspec.Meta(ge=1, le=3650)] = 30
    """So many days without a confirmation take 0.05 of how sure the agent is of a preference; a
    change counts for all the time since the last confirmation."""

    @property
    def period(self) -> timedelta:
        return timedelta(days=self.decay_days)


class Jobs(Section, frozen=True, kw_only=True):
    steps_max: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    """A longer plan is refused."""
    note_days: Annotated[int, msgspec.Meta(ge=1)] = 7
    """How long a job's note is remembered (SPEC J-1)."""
