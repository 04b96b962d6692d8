"""The core's policy in a session, from the configuration. Pure.

A field of `Policy` is the setting of the same name in one of the sections below. What is called
otherwise there stands in `RENAMED`; what is made of more than one setting is made in `policy_of`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from vigil.calendars import facts as calendar_facts
from vigil.facts.hooked import hooks_for
from vigil.settings import models
from vigil.settings.config import Config
from vigil.settings.homes import homes_of
from vigil.settings.hours import digest_time_of, pause_of, quiet_hours_of, zone_of
from vigil.settings.sections import Person
from vigil.settings.switches import has_mind
from vigil.subjects import SessionKey
from vigil.teams import DEFAULT_AGENT, TEAM
from vigil.timetable.cycles import KIND as CYCLE
from vigil.watching.interests import lines_of
from vigil.words.contacts import book_of_contacts

from .core import Policy
from .core.draft.kinds import profile_of, registered
from .core.draft.policy import AUTHORITIES, Hours
from .core.draft.profile import Profile
from .core.draft.sight import TOKENS_SHARE_MAX, Sight

SECTIONS: Final = ("autonomy", "sessions", "jobs", "model")
"""Those with settings that the core decides by under the same name."""
RENAMED: Final = {
    "autonomy_enabled": "autonomy.enabled",
    "approval_expires_s": "approvals.expires_s",
    "approvals_max": "approvals.open_max",
    "tasks_need_approval": "tasks.approval",
    "mind_tick_s": "mind.tick_seconds",
    "mind_confidence_min": "mind.min_confidence_to_act",
    "findings_shown": "cortex.cron_findings_shown",
    "extracted_max": "cortex.cron_extracted_max",
    "recalled_max": "cortex.autonomy_findings_shown",
    "pause_s": "memory.pause_s",
    "goals_max": "goals.max",
    "preference_days": "preferences.decay_days",
}
"""Field -> its setting (``section.key``)."""
MADE: Final = frozenset(
    [
        "authority",
        "book",
        "calls_max",
        "channels",
        "coalesce_ms",
        "double_text",
        "fact_sources",
        "fallback",
        "has_mind",
        "home_thread",
        "homes",
        "is_book_enough",
        "interests",
        "others",
        "profile",
        "result_length_max",
        "route",
        "sight",
        "steps_of",
        "teams",
        "timeouts_s",
        "urls",
    ]
)
"""Fields that are made of more."""


_PEOPLE_MAX: Final = 256
"""Whose clocks are remembered."""


def policy_of(config: Config, key: SessionKey) -> Policy:
    """Return the core's policy in a session, as configured."""
    agent = config.agent_of(key.agent)
    profile = configured(config, profile_of(key.kind))
    kinds = [configured(config, kind) for kind in registered().values()]
    return Policy(
        **_named(config),
        profile=profile,
        calls_max=profile.calls_max,
        fallback="" if config.model.fallback == _model_of(config, key) else config.model.fallback,
        timeouts_s={kind.name: kind.timeout_s for kind in kinds if kind.timeout_s},
        steps_of={kind.name: kind.calls_max for kind in kinds if kind.starter},
        authority=min(agent.authority, config.autonomy.authority_max, key=AUTHORITIES.index),
        result_length_max=min(Policy().result_length_max, context_tokens_of(config, key) // 5),
        sight=sight_of(config, _model_of(config, key)),
        book=book_of_contacts(config.person_of(key.user).contacts),
        is_book_enough=agent.content_to_contacts == "any",
        double_text=agent.double_text,
        coalesce_ms=agent.coalesce_ms,
        channels=tuple(sorted(config.channels)),
        route=config.person_of(key.user).channel,
        home_thread=config.person_of(key.user).home_thread,
        homes=tuple(map(str, homes_of(config, key))) if key.user == TEAM else (),
        teams=config.teams,
        others=others_of(config, key),
        has_mind=has_mind(config, key.agent),
        fact_sources=(
            *hooks_for(config.hooks, key.scope),
            *calendar_facts.sources_for(config.calendars, key.scope),
        ),
        interests=frozenset(lines_of(agent.looks) if key.kind == CYCLE else ()),
        urls=frozenset(url for site in config.sites.values() for url in site.urls),
    )


def others_of(config: Config, key: SessionKey) -> tuple[str, ...]:
    """Return the other agents of a session's person: those that are configured, and no team's.

    >>> from vigil.settings.sections import Agent
    >>> config = Config(agents={"coach": Agent(), "desk": Agent(kind="team", members=("ann",))})
    >>> others_of(config, SessionKey("ann", "vigil", "t1"))
    ('coach',)
    >>> others_of(config, SessionKey("team", "desk", "t1"))
    ()
    """
    if key.user == TEAM:
        return ()
    names = {DEFAULT_AGENT, *config.agents} - config.teams.keys() - {key.agent}
    return tuple(sorted(names))


def context_tokens_of(config: Config, key: SessionKey) -> int:
    """Return the context window of the model that answers a session, in tokens."""
    return models.context_tokens_of(config, _model_of(config, key))


def sight_of(config: Config, model: str) -> Sight:
    """Return what a model, by its name, is shown of files."""
    tokens_max = int(models.context_tokens_of(config, model) * TOKENS_SHARE_MAX)
    return Sight(takes=models.takes_of(config, model), tokens_max=tokens_max)


def _model_of(config: Config, key: SessionKey) -> str:
    profile = profile_of(key.kind)
    return models.name_of(config, agent=key.agent, profile=profile.name, tier=profile.tier)


@lru_cache(maxsize=_PEOPLE_MAX)
def hours_of(person: Person) -> Hours:
    """Return a person's clock."""
    return Hours(
        zone=zone_of(person),
        quiet=quiet_hours_of(person),
        digest=digest_time_of(person),
        pause=pause_of(person),
    )


def routed(policy: Policy, person: Person) -> Policy:
    """Return a policy with the channel that a person prefers now."""
    is_same = policy.route == person.channel
    return policy if is_same else msgspec.structs.replace(policy, route=person.channel)


def configured(config: Config, profile: Profile) -> Profile:
    """Return a profile with what is configured over its defaults."""
    changed = {field: _setting(config, path) for field, path in profile.settings.items()}
    return msgspec.structs.replace(profile, **changed) if changed else profile


def paths() -> dict[str, str]:
    """Return the setting behind each field that has one.

    >>> paths()["max_consecutive"], paths()["approvals_max"]
    ('autonomy.max_consecutive', 'approvals.open_max')
    """
    default = Config()
    found = {
        field: f"{section}.{field}"
        for section in SECTIONS
        for field in getattr(default, section).__struct_fields__
        if field in Policy.__struct_fields__ and field not in MADE
    }
    return found | RENAMED


_PATHS: Final = paths()


def _named(config: Config) -> dict[str, Any]:
    return {field: _setting(config, path) for field, path in _PATHS.items()}


def _setting(config: Config, path: str) -> Any:
    section, _, name = path.partition(".")
    return getattr(getattr(config, section), name)
