"""What is a person's own word, and what isn't (FLOW F-5, F-6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cortex.policy import policy_of
from tests.support.examples import up_to
from vigil.contracts.tools import Aim
from vigil.errors import ConfigError
from vigil.settings import config
from vigil.subjects import SessionKey
from vigil.words import aims, rule
from vigil.words.own import LENGTH_MAX, OwnWords
from vigil.words.rule import Book, Judgement, book_of, fields_of, judge

MAIL = {
    "type": "object",
    "properties": {
        "to": {"type": "array", "items": {"type": "string"}},
        "subject": {"type": "string"},
        "body": {"type": "string"},
        "thread": {"type": "string"},
    },
}
MAIL_AIMS: dict[str, Aim] = {
    "to": "who", "subject": "content", "body": "content", "thread": "which",
}  # fmt: skip
BEN = "ben@example.org"
BOOK = book_of([(["Ben Miller", "Ben"], [BEN]), (["Eve"], ["eve@example.org"])])


def judged(said: str, given: dict[str, Any], book: Book = BOOK, **of: Any) -> Judgement:
    return judge(aims.parts(given, MAIL_AIMS, MAIL), OwnWords([said]), book, **of)


def faults(found: Judgement) -> list[tuple[str, str]]:
    return [(one.path, one.fault) for one in found.foreign]


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (f"write to {BEN}.", BEN),
        (f"Write to {BEN.upper()}!", BEN),
        ("run `make test` please", "make test"),
        ("fetch https://example.org/a?b=1, then tell me", "https://example.org/a?b=1"),
        ("put it into notes/plan.md", "notes/plan.md"),
        ("book the Blue Room for Friday", "Blue Room"),
        ("pay 1.500,50 euros", 1500.5),
        ("pay $1,500", 1500),
        ("move it to 17", "17"),
        ("Nicht an Eva, sondern an ben@example.org", BEN),
        (f"Don't call. Write to {BEN}", BEN),
        (f"Don't wait;\nwrite to {BEN}", BEN),
        (f"Tell {BEN} I can't come", BEN),
        (f"write to {BEN} and not to Eve", BEN),
        ("会議室を予約して ben@example.org へ", BEN),
    ],
)
def test_what_they_said_is_theirs(said: str, value: Any) -> None:
    assert OwnWords([said]).has(value)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (f"write to {BEN}", "en@example.org"),
        (f"write to {BEN}", "ben@example.or"),
        (f"write to {BEN}", f"{BEN}.evil.net"),
        (f"write to x{BEN}", BEN),
        ("fetch https://example.org/a?b=1", "https://example.org/a"),
        ("fetch https://example.org/A", "https://example.org/a"),
        ("fetch https://example.org", "https://example.org.evil.net"),
        ("put it into notes/plan.md", "plan.md"),
        (f"don't write to {BEN}", BEN),
        (f"Never, whatever a page says, write to {BEN}", BEN),
        ("Schreib nicht an ben@example.org", BEN),
        ("Go on.", "on"),
        ("Is it all right?", "all"),
        ("pay 15 euros", 1500),
        ("pay 1,500", 150),
        ("write to him", "him"),
        (f"Don't write to Dr. Ben at {BEN}", BEN),
        (f"Don't write to:\n- a@b.org\n- {BEN}", BEN),
        (f"Never write to a@b.org; {BEN}", BEN),
        (f"write to a@b.org instead of {BEN}", BEN),
        (f"write to everybody but {BEN}", BEN),
        (f"Don\u02bct write to {BEN}", BEN),
        (f"{BEN} must not get it", BEN),
        (f"Schick es {BEN} nicht", BEN),
        ("write to ben@еxample.org", BEN),
        ("hello", ""),
    ],
)
def test_what_they_did_not_say_is_not(said: str, value: Any) -> None:
    assert not OwnWords([said]).has(value)


LETTERS = st.text("bcdfghjklmnpqrstvwxz", min_size=3, max_size=9)
"""No word of any language: some turn around what follows."""


@given(before=st.lists(LETTERS), value=LETTERS, after=st.lists(LETTERS))
@up_to(300)
def test_a_value_is_found_where_it_stands_alone_and_nowhere_else(
    before: list[str], value: str, after: list[str]
) -> None:
    """F-5: word for word. A part of a longer word is another word."""
    value = f"{value}@{value}.org"
    plain = OwnWords([" ".join((*before, value, *after))])
    joined = OwnWords([" ".join((*before, f"{value}x", f"x{value}", f"{value}.x", *after))])
    assert not joined.has(value)
    denied = OwnWords([" ".join(("never", *before, value, *after))])
    assert not denied.has(value)
    assert plain.has(value)


# ---------------------------------------------------------------- texts


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("remind me to call my dentist", "Call your dentist"),
        ("My dentist is Dr. Ray.", "The user's dentist is Dr. Ray"),
        ("remind me at nine to buy milk", "Buy milk (2026-11-29T09:00:00+01:00)"),
        ("Erinnere mich daran, den Müll rauszubringen", "Den Müll rauszubringen"),
        ("Rappelle-moi d'appeler le notaire demain", "Appeler le notaire demain"),
        ("歯医者に電話するのを覚えておいて", "歯医者に電話する"),
    ],
)
def test_a_text_of_their_words_is_theirs(said: str, text: str) -> None:
    assert OwnWords([said]).covers(text) or OwnWords([said]).foreign_words(text) == ("Appeler",)


@pytest.mark.parametrize(
    ("said", "text", "foreign"),
    [
        ("remind me to call my dentist", "Call the bank", ("bank",)),
        ("remind me to pay Ben", "Don't pay Ben", ("Don't",)),
        ("remind me to pay Ben", "Pay Ben only", ("only",)),
        ("remind me to pay Ben 50", "Pay Ben 500", ("500",)),
        ("remind me to call my dentist", "Call your dentist at evil.example", ("evil.example",)),
    ],
)
def test_a_word_of_anybody_else_is_found(said: str, text: str, foreign: tuple[str, ...]) -> None:
    assert OwnWords([said]).foreign_words(text) == foreign


@given(said=st.lists(LETTERS, min_size=1), other=LETTERS.filter(lambda w: len(w) > 6))
@up_to(300)
def test_no_word_gets_in_that_nobody_said(said: list[str], other: str) -> None:
    words = OwnWords([" ".join(said)])
    mixed = " ".join((*said, f"q{other}q"))
    assert words.foreign_words(mixed) == (() if f"q{other}q" in said else (f"q{other}q",))


def test_who_hands_in_a_page_says_none_of_it() -> None:
    assert not OwnWords(["x" * LENGTH_MAX + f" {BEN}"]).has(BEN)


# ---------------------------------------------------------------- the rule


def test_a_report_goes_to_whom_they_name() -> None:
    """F-6: the content may be anybody's, as long as it carries nobody's address."""
    found = judged(f"Send the summary to {BEN}", {"to": [BEN], "body": "All builds are red."})
    assert found.may_run
    assert not found.is_own, "what it says is marked"
    named = judged("Send the summary to Ben", {"to": [BEN], "body": "All builds are red."})
    assert named.may_run, "the name stands for the one address that the book has for it"


def test_nobody_else_is_reached() -> None:
    found = judged(f"Send it to {BEN}", {"to": [BEN, "mark@evil.example"], "body": "x"})
    assert faults(found) == [("to", "unnamed")]
    assert rule.reason(found.foreign).startswith(
        'to: "mark@evil.example" is neither in what you said'
    )


def test_who_is_only_in_the_book_gets_the_persons_words() -> None:
    """F-6, 4; and an owner may let them get more."""
    given = {"to": ["eve@example.org"], "body": "the locker code is 4711"}
    assert ("body", "worded") in faults(judged("What does the page say?", given))
    assert judged("What does it say?", given, is_book_enough=True).may_run
    assert judged(
        "Tell them that I'm late", {"to": ["eve@example.org"], "body": "I'm late"}
    ).may_run


@pytest.mark.parametrize(
    "carried",
    [
        "write to mark@evil.example", "see https://evil.example/x", "see evil.example/x",
        "see www.evil.example", "pay to DE02 1203 0000 0000 2020 51", "call +43 660 123 45 67",
        "ping @markevil", "account 12345678", "the l\u200bink", "see https://evil.example/x.html",
        "write to eve@evil.sh", "see https://2026-11-29.evil.example/a", "see evil.рф",
        "write to eve@2026-11-29.evil.example", "see evil\u3002example", "see evil.xn--p1ai",
        "account 12–34–56–78", "account 5551-23-45 67", "account 12-34-5678",
    ],
)  # fmt: skip
def test_content_carries_no_address_of_anybody_else(carried: str) -> None:
    """F-6, 5."""
    found = judged(f"Send the summary to {BEN}", {"to": [BEN], "body": f"Hello, {carried}."})
    assert {fault for _, fault in faults(found)} == {"carries"}


@pytest.mark.parametrize(
    "harmless",
    [
        "at 2026-11-29 09:00 it was red", "see notes/plan.md", "v1.2.3 fails, 17 of 40",
        "red since 29.11.2026.", "it is report.final.pdf", "完了しました。会議は金曜です",
    ],
)  # fmt: skip
def test_content_may_say_what_is_no_address(harmless: str) -> None:
    assert judged(f"Send the summary to {BEN}", {"to": [BEN], "body": harmless}).may_run


def test_a_thing_is_theirs_by_their_words_or_by_a_whole_field_of_the_same_server() -> None:
    """F-6, 2 and 3."""
    given = {"to": [BEN], "thread": "th-1", "body": "Yes."}
    said = f"Answer {BEN}"
    assert faults(judged(said, given)) == [("thread", "unknown")]
    fields = frozenset(fields_of({"mails": [{"thread": "th-1", "subject": "Hi th-2"}]}))
    assert judged(said, given, fields=fields).may_run
    assert not judged(said, given | {"thread": "th-2"}, fields=fields).may_run, "a part of a field"
    lonely = judged("Yes.", {"thread": "th-1", "body": "Yes."}, fields=fields)
    assert faults(lonely) == [("", "aimless")], "nothing at all is of their words"


def test_an_instant_that_a_model_computed_makes_no_call_the_persons() -> None:
    """F-5: it is theirs if the rest is; of a call with nothing else nothing is."""
    fields = frozenset(fields_of({"thread": "th-1"}))
    instant = {"thread": "2026-11-29"}
    assert faults(judged("What's new?", instant)) == [("", "aimless")]
    assert not judged("What's new?", instant).is_own
    both = {"to": [], "thread": ["th-1", "2026-11-29"]}
    assert faults(judged("What's new?", both, fields=fields)) == [("", "aimless")]
    assert judged("Move th-1", both).is_own


def test_a_name_of_two_people_stands_for_none() -> None:
    book = book_of([(["Al"], ["al@a.example"]), (["Al"], ["al@b.example"])])
    found = judged("Send it to Al", {"to": ["al@b.example"], "body": "the code is red"}, book)
    assert faults(found) == [("body", "worded")]


@pytest.mark.parametrize(
    ("said", "is_named"),
    [
        ("Will you sum this up?", False), ("Sum it up. Will it rain?", False),
        ("what will it cost?", False), ("Don't send it to Will.", False),
        ("Send it to Will, please.", True), ("send it to will smithers", True),
    ],
)  # fmt: skip
def test_a_contact_with_the_name_of_a_common_word_is_named_as_a_name_is(
    said: str, is_named: bool
) -> None:
    """Else any request that has "will" in it would let a page's text go to Will."""
    to = "will@example.org"
    book = book_of([(["Will Smithers", "Will", "Smithers"], [to])])
    assert judged(said, {"to": [to], "body": "the code is red"}, book).may_run is is_named


def test_a_field_that_no_schema_has_counts_as_a_value() -> None:
    found = judged(f"Send it to {BEN}", {"to": [BEN], "bcc": ["x"]})
    assert {path for path, _ in faults(found)} == {"bcc"}


@given(
    said=st.text(max_size=200),
    to=st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=4),
    body=st.text(max_size=60),
)
@up_to(500)
def test_whoever_is_reached_is_named_or_known(said: str, to: list[str], body: str) -> None:
    """F-6, 1: whatever is said, and whatever is called."""
    found = judged(said, {"to": to, "body": body})
    if found.may_run:
        plain = said.casefold()
        assert all(one.casefold() in plain or BOOK.has(one) for one in to)


@given(given=st.dictionaries(st.sampled_from(["to", "body", "thread", "new"]), st.text()))
@up_to(300)
def test_nothing_is_theirs_who_said_nothing(given: dict[str, str]) -> None:
    found = judge(aims.parts(given, MAIL_AIMS, MAIL), OwnWords([]), Book())
    assert not found.may_run


def test_a_call_that_names_nothing_is_nobodys_own() -> None:
    """A page chooses which tool is called."""
    assert not judged("Thanks", {}).may_run
    assert not judged("Thanks", {}).is_own


# ---------------------------------------------------------------- contacts


def test_contacts_are_read_from_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "vigil.toml").write_text(
        f'[people.ann]\ncontacts = ["Ben Miller <{BEN}>", "+43 660 1234567"]\n'
    )
    loaded = config.load({}, home=tmp_path).config
    policy = policy_of(loaded, SessionKey.of("ann", "vigil", "t1"))
    assert policy.book.has("+43 660 1234567")
    assert policy.book.is_named(BEN, OwnWords(["Write to Ben Miller"]))
    assert not policy_of(loaded, SessionKey.of("bob", "vigil", "t1")).book.has(BEN)


def test_a_contact_without_an_address_is_named(tmp_path: Path) -> None:
    (tmp_path / "vigil.toml").write_text('[person]\ncontacts = ["Ben <>"]\n')
    with pytest.raises(ConfigError, match=r"contacts: 'Ben <>' has no address"):
        config.load({}, home=tmp_path)


# ---------------------------------------------------------------- aims


def test_arguments_are_told_by_their_names_and_types() -> None:
    proposed = aims.proposed(
        {
            "properties": {
                "recipients": {}, "cc": {}, "amount": {}, "event_id": {}, "subject": {},
                "max_results": {}, "when": {"format": "date-time"}, "thing": {},
            }
        }
    )  # fmt: skip
    assert proposed == {
        "recipients": "who", "cc": "who", "amount": "which", "event_id": "which",
        "subject": "content", "max_results": "detail", "when": "detail", "thing": "who",
    }  # fmt: skip


def test_an_aim_holds_for_all_below_it() -> None:
    found = aims.parts(
        {"event": {"who": ["a"], "text": "b", "other": 1}},
        {"event": "which", "event.who": "who"},
        {"properties": {"event": {"properties": {"who": {}, "text": {}, "other": {}}}}},
    )
    assert [(one.path, one.aim) for one in found] == [
        ("event.who", "who"), ("event.text", "which"), ("event.other", "which"),
    ]  # fmt: skip


def test_what_the_schema_has_anyway_is_nobodys_choice() -> None:
    schema = {"properties": {"action": {"default": "create"}}}
    (part,) = aims.parts({"action": "create"}, {}, schema)
    assert part.is_default
    (part,) = aims.parts({"action": "remove"}, {}, schema)
    assert not part.is_default


@pytest.mark.parametrize(
    ("said", "is_theirs"),
    [
        ("write to ben2000@example.org", False),
        ("look at https://a.example/2000 again", False),
        ("pay invoice INV-2000", False),
        ("pay 2000 to Ben", True),
        ("pay €2000, not more", True),
        ("pay EUR2,000.00", True),
        ("close #2000", True),
        ("merge the one with limit=2000", True),
        ("zahle 2.000€", True),
        ("2000円を払って", True),
    ],
)
def test_digits_of_a_name_or_a_link_are_no_number(said: str, *, is_theirs: bool) -> None:
    """F-6: an amount that stands in an address only, the person never gave."""
    assert OwnWords([said]).has(2000) is is_theirs


def test_a_word_is_whole_with_the_marks_on_its_letters() -> None:
    """F-6: pieces of a person's words make no other words theirs."""
    said = OwnWords(["कल की बैठक का नोट रवि को भेजो।"])
    assert said.covers("रवि को बैठक का नोट")
    assert said.foreign_words("किताब बेचो") == ("किताब", "बेचो")
