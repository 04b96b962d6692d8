"""The section on how much may be spent."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from ...fields.section import NotNegative, NotNegativeF, Section

Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Times = Annotated[float, msgspec.Meta(ge=1, le=1000)]


class Caps(Section, frozen=True, kw_only=True):
    """Limits of each day: a person's and their sessions', rows' and goals' of a day of their time
    zone, an agent's and the instance's of a UTC day. A call that doesn't fit into one of them isn't
    made, and none fits into 0."""

    daily_tokens: NotNegative = 20_000_000
    """Tokens of all agents, of every kind. With 0 no model is asked; to lift the limit,
    set a large number. Rehearsal is free."""
    daily_usd: NotNegativeF = math.inf
    """What they may cost. If set, only models with prices are asked."""
    share_per_agent: Share = 1.0
    """One agent's share of both."""
    share_per_user: Share = 0.5
    """One person's."""
    share_unattended: Share = 0.8
    """Of each limit of the instance, an agent or a person: what cycles, jobs, tasks, the timetable
    and all else may use that no message began. The rest is for what people say."""
    raise_max: Times = 2.0
    """How many times its limit a person ("more"), an agent or the instance (`vigil budget raise`)
    may be given for one day; 1: no more than that."""
    share_per_session: Share = 1.0
    """One session's: a conversation's, a worker's, a job's, a task's, with what it starts."""
    daily_tokens_per_agent: NotNegative | None = None
    """An amount for one agent, beside its share: the lesser holds. Unset: the share alone."""
    daily_usd_per_agent: NotNegativeF | None = None
    """What that may cost."""
    daily_tokens_per_user: NotNegative | None = None
    """An amount for one person."""
    daily_usd_per_user: NotNegativeF | None = None
    """What that may cost."""
    daily_tokens_per_session: NotNegative | None = None
    """An amount for one session, with what it starts."""
    daily_usd_per_session: NotNegativeF | None = None
    """What that may cost."""
    daily_tokens_per_row: NotNegative | None = None
    """An amount for one row of the timetable: all its runs together."""
    daily_usd_per_row: NotNegativeF | None = None
    """What that may cost."""
    daily_tokens_per_goal: NotNegative | None = None
    """An amount for one goal: all that is done for it together."""
    daily_usd_per_goal: NotNegativeF | None = None
    """What that may cost."""
