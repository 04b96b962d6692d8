"""Which addresses an agent fetches by itself: those of the configuration, to the letter (L-7).

What the person wrote in a conversation is theirs to order, whoever wrote the address down; but once
outside content had a part, their words free no address, not even one that they wrote.
"""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cortex.core import Policy
from services.cortex.core.draft.kinds import profile_of
from services.cortex.policy import policy_of
from tests.cortex.driver import Driver, answer, call
from tests.cortex.test_core_readers import TOOLS, offered
from tests.support.examples import up_to
from vigil.contracts import Control, ControlPayload, Start
from vigil.settings.config import Config
from vigil.settings.sites import Site
from vigil.subjects import SessionKey

URL = "https://api.example.org/v1/today"
CONFIG = Config(sites={"api": Site(host="api.example.org", urls=(URL,))})


def unordered(url: str, *, is_tainted: bool = False, authority: str = "observe") -> Driver:
    """A worker that nobody ordered, which fetches an address."""
    policy = policy_of(CONFIG, SessionKey.of("ann", "vigil", "t1"))
    changes = {"profile": profile_of("worker"), "authority": authority, "urls": policy.urls}
    driver = Driver(None, Policy(**changes))  # type: ignore[arg-type]
    driver.tools = dict(TOOLS) | {"http_get": offered("http_get", "external", "worker")}
    left = [answer(call("http_get", url=url)), answer("Done.")]
    driver.brain = lambda _: left.pop(0)
    start = Start(prompt="look", parent="ann:vigil:t1", call_id="1f", is_tainted=is_tainted)
    payload = ControlPayload(op="start", start=start)
    driver.feed(Control(id="s", session_key=driver.key, created_at=driver.now, payload=payload))
    return driver


def has_run(driver: Driver) -> bool:
    assert bool(driver.called) != bool(driver.state.approvals)
    return bool(driver.called)


def test_a_configured_address_is_fetched_though_nobody_ordered_it() -> None:
    driver = unordered(URL)
    assert has_run(driver)
    assert driver.called[0].payload.risk == "external"  # the executor knows it as no less


@pytest.mark.parametrize(("is_tainted", "authority"), [(True, "observe"), (False, "off")])
def test_not_where_even_reading_asks_nor_once_outside_content_had_a_part(
    is_tainted: bool, authority: str
) -> None:
    assert not has_run(unordered(URL, is_tainted=is_tainted, authority=authority))


TRICKS = [
    f"{URL}?q=secret", f"{URL}#secret", f"{URL}/", f"{URL}/secret", f"{URL} ",
    f" {URL}", f"{URL}\n",
    f"{URL}%20", f"{URL}?", f"{URL}#", f"{URL}\u200b", URL.upper(), URL.replace("api", "API"),
    URL.replace("example.org", "example.org."), URL.replace("example.org", "example.org:443"),
    URL.replace("https", "http"), URL.replace("https://", "https://secret@"),
    URL.replace("/v1", "//v1"), URL.replace("/v1", "/./v1"), URL.replace("/v1", "/x/../v1"),
    URL.replace("today", "%74oday"), URL.replace("api", "\u0430pi"), URL.replace("/", "\\"),
    URL.replace("example.org", "example.org.evil.example"), URL.replace("today", "today;a=b"),
]  # fmt: skip


@pytest.mark.parametrize("url", TRICKS)
def test_no_way_to_write_another_address_makes_it_one(url: str) -> None:
    assert not has_run(unordered(url))


@up_to(200)
@given(st.data())
def test_no_change_of_an_address_makes_it_one(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(URL)))
    until = data.draw(st.integers(at, min(at + 3, len(URL))))
    alphabet = st.sampled_from("/.?#@%:;\\\u200b\u0430aA 0\n\t-_") | st.characters(codec="utf-8")
    given_ = data.draw(st.text(alphabet, max_size=4) | st.just(quote(URL[at:until], safe="")))
    url = URL[:at] + given_ + URL[until:]
    if url == URL or not url:
        return
    assert not has_run(unordered(url))


def test_a_call_of_another_kind_is_none() -> None:
    """A value is compared as it is: nothing that is like an address stands for one."""
    assert policy_of(CONFIG, SessionKey.of("ann", "vigil", "t1")).urls == {URL}
    assert policy_of(Config(), SessionKey.of("ann", "vigil", "t1")).urls == frozenset()


def conversation(url: str, *, is_swayed: bool) -> Driver:
    """A conversation in which the person writes an address, and the agent fetches another."""
    driver = Driver(None, Policy(authority="off"))
    driver.tools = dict(TOOLS) | {"http_get": offered("http_get", "external", "channel")}
    driver.brain = lambda _: answer("Noted.")
    if is_swayed:
        driver.outside("Read this.")
    left = [answer(call("http_get", url=url)), answer("Done.")]
    driver.brain = lambda _: left.pop(0)
    driver.user(f"What stands at {URL} today?")
    return driver


def test_what_the_person_wrote_is_fetched_without_leave() -> None:
    assert has_run(conversation(URL, is_swayed=False))


def test_what_the_person_wrote_is_fetched_again_after_a_page_was_read() -> None:
    """FLOW F-7: the address in the order, to the letter."""
    assert has_run(conversation(URL, is_swayed=True))


@pytest.mark.parametrize("url", TRICKS)
def test_no_other_address_is_fetched_without_leave_once_outside_content_had_a_part(
    url: str,
) -> None:
    assert not has_run(conversation(url, is_swayed=True))
