"""Who may read and act for an owner (LOOPS L-17), and how a team is configured."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import up_to
from vigil.errors import ConfigError
from vigil.settings import config
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey
from vigil.teams import TEAM, Teams, holding, may_act, owner_of, reach_of

PEOPLE = ("ann", "ben", "eve")
AGENTS = ("vigil", "desk", "den")

people, agents = st.sampled_from(PEOPLE), st.sampled_from(AGENTS)
owners = st.sampled_from((*PEOPLE, TEAM))
teams = st.dictionaries(
    agents, st.lists(people, min_size=1, unique=True).map(tuple), max_size=len(AGENTS)
)


@up_to(300)
@given(user=people, owner=owners, agent=agents, teams=teams)
def test_only_oneself_or_a_member(user: str, owner: str, agent: str, teams: Teams) -> None:
    """The rule against a table of all that is allowed, made from the other side."""
    allowed = {(one, one, each) for one in PEOPLE for each in AGENTS if each not in teams}
    allowed |= {(one, TEAM, each) for each, members in teams.items() for one in members}
    assert may_act(user, owner, agent, teams) == ((user, owner, agent) in allowed)


@up_to(300)
@given(user=people, owner=owners, agent=agents, teams=teams)
def test_lists_show_all_that_one_may_reach(user: str, owner: str, agent: str, teams: Teams) -> None:
    """Nothing of others; and of one's own at most what was there before an agent got a team."""
    key = SessionKey(owner, agent, "t1")
    is_shown = any(one.covers(key) for one in reach_of(user, teams))
    assert is_shown or not may_act(user, owner, agent, teams)
    assert not is_shown or owner == user or may_act(user, owner, agent, teams)


@up_to(300)
@given(user=people, agent=agents, teams=teams)
def test_what_is_begun_is_ones_own_or_the_teams(user: str, agent: str, teams: Teams) -> None:
    owner = owner_of(user, agent, teams)
    assert may_act(user, owner, agent, teams) == (agent not in teams or user in teams[agent])
    assert holding(owner, agent).covers(SessionKey(owner, agent, "t1"))
    other = SessionKey(owner, "other", "t1")
    assert holding(owner, agent).covers(other) == (owner != TEAM), "two teams share no bound"


@up_to(100)
@given(user=people, owner=owners, agent=agents, teams=teams)
def test_an_admin_reaches_all(user: str, owner: str, agent: str, teams: Teams) -> None:
    one = Principal(user=user, is_admin=False, token_id="t", teams=teams)
    assert one.may_reach(owner, agent) == may_act(user, owner, agent, teams)
    admin = Principal(user=user, is_admin=True, token_id="t", teams=teams)
    assert admin.may_reach(owner, agent)


def load(home: Path, text: str) -> config.Config:
    home.mkdir()
    (home / "vigil.toml").write_text(text)
    return config.load({}, home=home).config


def test_a_team_is_read(tmp_path: Path) -> None:
    read = load(tmp_path / "h", '[agents.desk]\nkind = "team"\nmembers = ["ann", "ben"]\n')
    assert read.teams == {"desk": ("ann", "ben")}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[agents.desk]\nkind = "team"', "[agents.desk]: members: must not be empty"),
        ('[agents.desk]\nkind = "team"\nmembers = []', "[agents.desk]: members: must not be empty"),
        ('[agents.desk]\nkind = "team"\nmembers = ["ann", "ann"]', "'ann' is there twice"),
        ('[agents.desk]\nkind = "team"\nmembers = ["ann b"]', "members: 'ann b': may contain only"),
        ('[agents.desk]\nkind = "team"\nmembers = ["*"]', "members: '*': may contain only"),
        ('[agents.desk]\nkind = "team"\nmembers = ["team"]', "members: 'team': 'team' owns"),
        ('[agents.desk]\nkind = "team"\nmembers = [""]', "members: '': must not be empty"),
        ('[agents.desk]\nkind = "team"\nmembers = "ann"', "agents.desk.members"),
        ('[agents.desk]\nkind = "teem"\nmembers = ["ann"]', "agents.desk.kind"),
        ('[agents.desk]\nmembers = ["ann"]', "[agents.desk]: members: go with kind = 'team'"),
        ('[agent]\nkind = "team"', "[agent]: kind: a team has an agent of its own"),
        ('[hooks.ci]\nuser = "team"\nthread = "t"', "[hooks.ci]: user must be 'team' with"),
        (
            '[agents.desk]\nkind = "team"\nmembers = ["ann"]\n'
            '[hooks.ci]\nuser = "ann"\nagent = "desk"\nthread = "t"',
            "[hooks.ci]: user must be 'team' with",
        ),
    ],
)  # fmt: skip
def test_a_bad_team_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "h", text)
    assert reason in str(caught.value)
