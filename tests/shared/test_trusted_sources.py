"""Which sources are trusted: by their exact name alone (FLOW F-15)."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import up_to
from vigil.subjects import Scope
from vigil.trust.kept import TrustedSources
from vigil.trust.sources import PREFIX, Trusted, key_of

AT = datetime(2026, 5, 1, tzinfo=UTC)
ANN = Scope("vigil", "ann")
names = st.text("abz:/._-*> ", max_size=6).map(lambda text: f"hook:{text}")
scopes = st.builds(
    Scope, st.sampled_from(["vigil", "vig", "il"]), st.sampled_from(["ann", "an", "team"])
)


def trusted(whose: Scope, source: str) -> Trusted:
    return Trusted(owner=whose.owner, agent=whose.agent, source=source, at=AT, by=whose.owner)


@up_to(300)
@given(scopes, names, scopes, names)
def test_nothing_but_that_source_of_that_owner(
    whose: Scope, source: str, other: Scope, another: str
) -> None:
    """No beginning, no pattern, nobody else's; the positive control is the source itself."""
    known = TrustedSources()
    key = key_of(whose, source)
    known.take(key, msgspec.json.encode(trusted(whose, source)))
    assert known.has(whose, source)
    assert known.has(other, another) is ((other, another) == (whose, source))
    assert not known.has(whose, "")
    assert [one.source for one in known.of(whose)] == [source]
    known.take(key, None)
    assert not known.has(whose, source)


def test_an_entry_that_stands_elsewhere_than_it_says_trusts_nothing() -> None:
    """Whoever could write one key could otherwise trust a source for anybody."""
    known = TrustedSources()
    data = msgspec.json.encode(trusted(ANN, "hook:ci"))
    for key in (key_of(ANN, "hook:other"), key_of(Scope("vigil", "bob"), "hook:ci"), f"{PREFIX}x"):
        known.take(key, data)
    known.take(key_of(ANN, "hook:ci"), b"{")
    assert not known.has(ANN, "hook:ci")
    assert not known.has(Scope("vigil", "bob"), "hook:ci")
    known.take(key_of(ANN, "hook:ci"), data)
    assert known.has(ANN, "hook:ci")
