"""The registry of kinds of sessions, and the policy that is made of it (SPEC C-1)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import msgspec
import pytest

from services.cortex import profiles
from services.cortex.core import Policy
from services.cortex.core.draft.kinds import registered, starters
from services.cortex.policy import MADE, RENAMED, paths, policy_of
from vigil.contracts.session_kinds import SESSION_KINDS, child_kinds
from vigil.settings.config import Config
from vigil.signals.kinds import KINDS
from vigil.subjects import SessionKey

CHILD: Final = SessionKey("ann", "vigil", "_worker-1f")


def test_the_kinds_that_people_read_of_are_those_that_there_are() -> None:
    """The gateway and `why` have their words, the cortex the profiles."""
    begun = {name for name, profile in registered().items() if profile.begins}
    assert begun == set(SESSION_KINDS)
    starting = {profile.name for profile in starters().values()}
    # A verdict starts the one, a server the other, and no model.
    assert starting | {"errand", "sampler"} == set(child_kinds())
    told = {f"{name}.{half}" for name, kind in SESSION_KINDS.items() for half in kind.signals}
    assert told <= set(KINDS)
    assert all(profile.name == name for name, profile in registered().items())


def test_a_name_or_a_purpose_is_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registered.cache_clear()
    (tmp_path / "other.py").write_text("from services.cortex.profiles.planner import PROFILE\n")
    monkeypatch.setattr(profiles, "__path__", [*profiles.__path__, str(tmp_path)])
    with pytest.raises(ValueError, match=r"profiles\.planner: the name or the purpose is taken"):
        registered()
    sys.modules.pop("services.cortex.profiles.other")


def test_every_number_of_the_policy_comes_from_the_configuration() -> None:
    """But for the few that nobody can set."""
    fixed = {"attempts_max", "follow_up_bytes_max", "tool_calls_max"}
    assert set(Policy.__struct_fields__) == set(paths()) | MADE | fixed
    assert set(RENAMED) <= set(Policy.__struct_fields__)


def test_a_policy_is_as_configured() -> None:
    config = msgspec.convert(
        {
            "autonomy": {"enabled": True, "max_consecutive": 7},
            "approvals": {"expires_s": 60, "open_max": 3},
            "sessions": {"depth_max": 2, "children_max": 9, "worker_timeout_s": 12},
            "model": {"calls_max": 4, "context_tokens": 20_000},
            "memory": {"pause_s": 90},
        },
        Config,
    )
    policy = policy_of(config, SessionKey("ann", "vigil", "t1"))
    assert (policy.autonomy_enabled, policy.max_consecutive) == (True, 7)
    assert (policy.approval_expires_s, policy.approvals_max, policy.depth_max) == (60, 3, 2)
    assert (policy.calls_max, policy.profile.children_max, policy.pause_s) == (4, 9, 90)
    assert (policy.timeouts_s["worker"], policy.result_length_max) == (12, 4_000)
    worker = policy_of(config, CHILD)
    assert (worker.calls_max, worker.profile.timeout_s) == (50, 12)


@pytest.mark.parametrize("kind", ["worker", "branch", "reader", "cron", "errand"])
def test_the_limits_of_each_kind_are_settings(kind: str) -> None:
    """Seeds 003 and 004: a person turns to the configuration for them."""
    config = msgspec.convert(
        {
            "cortex": {f"{kind}_max_turns": 7, "cron_max_workers": 1, "cron_findings_shown": 4},
            "mind": {"max_tokens_per_tick": 1000, "min_confidence_to_act": 0.8},
        },
        Config,
    )
    policy = policy_of(config, SessionKey("ann", "vigil", f"_{kind}-1"))
    assert (policy.calls_max, policy.findings_shown) == (7, 4)
    assert policy.mind_confidence_min == 0.8
    assert kind != "cron" or policy.profile.children_max == 1
    mind = policy_of(config, SessionKey("ann", "vigil", "_mind"))
    assert mind.profile.max_tokens == 1000
