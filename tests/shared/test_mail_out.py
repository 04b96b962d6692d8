"""What is sent as a mail: the bytes, as other programs read them."""

from __future__ import annotations

import email
import re
from datetime import UTC, datetime
from email import policy

from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import up_to
from vigil.channels.mail.composition import Letterhead, composed
from vigil.contracts import Said
from vigil.contracts.mail.heads import MailHead
from vigil.mail import ids
from vigil.mail.bodies import read_mail

ACCOUNT = Letterhead(
    address="vigil@a.example", name="Vigil, für Ann", console_url="https://v.example/"
)
AT = datetime(2026, 3, 1, 7, 30, tzinfo=UTC)
IDS = st.from_regex(r"<[!-;=?A-Za-z0-9._%+-]{1,180}@[a-z0-9.-]{1,90}>", fullmatch=True).filter(
    lambda one: len(ids.ids_in(one)) == 1
)


def said(text: str = "hi", **changes: object) -> Said:
    fields = {
        "id": "8f7023ab88c1acf2d22a41c37cec6433",
        "session_key": "ann:vigil:t1",
        "text": text,
        "at": AT,
        "caused_by": "e",
        "turn_seq": 3,
    }
    return Said(**fields | changes)  # type: ignore[arg-type]


@up_to(300)
@given(
    st.text(max_size=400),
    st.lists(IDS, max_size=60, unique=True),
    IDS,
    st.text(max_size=120),
)
def test_a_mail_is_read_by_others_as_it_was_meant(
    text: str, before: list[str], parent: str, subject: str
) -> None:
    """D-1: whatever is said and whatever it answers: short lines, ids as they are, one text."""
    head = MailHead(
        address="ann@b.example", message_id=parent, references=tuple(before), subject=subject
    )
    data = composed(said(text), "ann@b.example", head, ACCOUNT)
    assert data == composed(said(text), "ann@b.example", head, ACCOUNT)
    data.decode("ascii")
    assert max(map(len, data.split(b"\r\n"))) <= 998
    assert b"\n" not in data.replace(b"\r\n", b"")

    raw = email.message_from_bytes(data)
    own, root = (
        "<vigil.8f7023ab88c1acf2d22a41c37cec6433.vigil.t1@a.example>",
        ("<vigil-thread.vigil.t1@a.example>"),
    )
    assert raw["message-id"] == own
    assert raw["in-reply-to"] == parent
    references = raw["references"].split()
    assert len(raw["references"]) < 998
    assert (references[0], references[-1]) == (root, parent)
    assert set(references) <= {root, parent, *before}
    if sum(map(len, before)) < 500:
        assert references == [root, *(one for one in before if one != parent), parent]

    mail = email.message_from_bytes(data, policy=policy.default)
    assert not [defect for part in mail.walk() for defect in part.defects]
    top = data.split(b"\r\n\r\n")[0]
    assert len(re.findall(rb"(?m)^(?:Subject|From|To|Date|Message-ID|MIME-Version):", top)) == 6
    assert mail["to"].addresses[0].addr_spec == "ann@b.example"
    assert mail["from"].addresses[0].display_name == "Vigil, für Ann"
    assert mail["date"].datetime == AT
    for line in top.split(b"\r\n"):
        assert all(len(word) <= 75 for word in re.findall(rb"=\?[^? ]*\?[^? ]*\?[^? ]*\?=", line))

    bodies = data.split(b"\r\n\r\n", maxsplit=1)[1]
    assert max(map(len, bodies.split(b"\r\n"))) <= 76

    plain = mail.get_body(("plain",))
    page = mail.get_body(("html",))
    assert plain is not None
    assert page is not None
    assert "https://v.example/console/conversations/ann:vigil:t1" in plain.get_content()
    assert "https://v.example/console/conversations/ann:vigil:t1" in page.get_content()
    read = read_mail(data)
    assert read.head.kind == "automatic"
    assert not read.unreadable
    visible = [one for one in text.split() if one.isalnum()]
    assert [one for one in visible if one not in read.text] == []


@up_to(200)
@given(
    st.from_regex(r"[A-Za-z0-9-]{1,64}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9-][A-Za-z0-9_-]{0,63}", fullmatch=True),
    st.lists(IDS, max_size=5),
)
def test_a_reply_finds_its_conversation(agent: str, thread: str, others: list[str]) -> None:
    """By what it replies to, by a mail before that, or by the conversation's own id."""
    own = ids.message_id("0f", agent, thread, "a.example")
    root = ids.thread_id(agent, thread, "a.example")

    def place(references: list[str], in_reply_to: str) -> ids.MailPlace:
        return ids.place_of(references, in_reply_to, "<own@x>", channel="work", domain="a.example")

    found = ids.MailPlace(thread=thread, agent=agent, reply_to="0f")
    assert place([root, *others], own) == place([root, own, *others], "") == found
    assert place([root, *others], "<other@x>") == ids.MailPlace(thread=thread, agent=agent)
    # A conversation that a person began by mail: all of it is one, by its first mail.
    first = place([], "")
    assert first == place(["<own@x>", *others], "<other@x>")
    assert first.is_new
    assert ids.place_of([], "", "<b@x>", channel="work", domain="a.example") != first


def test_a_conversation_of_the_cortex_itself_is_never_addressed() -> None:
    """X-4: nor anything that is no part of a key."""
    for thread in ("_mind", "a.b", "x" * 65):
        forged = f"<vigil.0f.vigil.{thread}@a.example>"
        found = ids.place_of((forged,), "", "<o@x>", channel="m", domain="a.example")
        assert found.is_new
        assert found.thread.startswith("mail-")


def test_an_unasked_message_says_so_and_has_a_subject() -> None:
    data = composed(
        said(
            "Beware: a very long first line, " * 5 + "\nmore", is_autonomous=True, is_tainted=True
        ),
        "ann@b.example",
        None,
        Letterhead(address="vigil@a.example", name=""),
    )
    mail = email.message_from_bytes(data, policy=policy.default)
    assert mail["auto-submitted"] == "auto-generated"
    assert mail["in-reply-to"] is None
    assert len(mail["subject"]) <= 70
    assert mail["subject"].endswith("…")
    body = mail.get_body(("plain",))
    assert body is not None
    assert "look twice" in body.get_content()
    assert "console" not in body.get_content()
