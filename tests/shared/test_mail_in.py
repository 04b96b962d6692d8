"""What comes as a mail: read whatever it is, trusted only if it's proven."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.examples import up_to
from tests.support.pictures import pdf
from vigil.channels import pairs
from vigil.channels.mail import authentic, words
from vigil.channels.pairs import ChannelPerson, PairCode, PairedAddress
from vigil.mail import place
from vigil.mail.bodies import MailFile, head_bytes, read_mail
from vigil.mail.heads import author_of, read_head
from vigil.mail.quotes import folded, marked, with_bars
from vigil.texts.glyphs import without_hidden

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HEAD = b"From: ann@b.example\r\nMessage-ID: <1@b.example>\r\nSubject: Plan\r\n"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


PDF = pdf(1)


def message(data: bytes, page: str = "", **options: object) -> str:
    mail = read_mail(data)
    found = words.words_in(mail, page, [(one, "") for one in words.mails_in(mail.files)])
    _, remarks = words.taken_files(mail.files, found.forwarded)
    given_ = {"has_subject": False, "remarks": remarks, "bytes_max": 60_000} | options
    return words.message_of(mail, found, **given_)  # type: ignore[arg-type]


# ---------------------------------------------------------------- whatever comes


@up_to(300)
@given(st.binary(max_size=600), st.binary(max_size=600))
def test_anything_is_read(head: bytes, body: bytes) -> None:
    """Something comes out, and it can be stored; the head alone is read the same."""
    data = head + b"\r\n\r\n" + body
    mail = read_mail(data)
    assert read_head(head_bytes(data)).identity == mail.head.identity
    message(data).encode()
    for one in (mail.text, mail.html, mail.head.subject, mail.head.message_id):
        one.encode()


CONTROLS: Final = ("Cs", "Cc", "Zl", "Zp")
NEWER: Final = "Much love \U0001fa77\U0001fae8, \U0002ebf0"
"""Two pictures and an ideograph that came after Python 3.11."""


@up_to(200)
@example(NEWER, "base64", "utf-8")
@given(
    st.text(st.characters(exclude_categories=CONTROLS), min_size=1),
    st.sampled_from(["7bit", "quoted-printable", "base64", "8bit"]),
    st.sampled_from(["utf-8", "iso-8859-15", "shift_jis", "koi8-r"]),
)
def test_a_text_is_read_as_it_was_written(text: str, encoding: str, charset: str) -> None:
    try:
        data = text.encode(charset)
    except UnicodeEncodeError:
        return
    mail = EmailMessage(policy=SMTP)
    try:
        mail.set_content(text, charset=charset, cte=encoding)
    except (ValueError, UnicodeEncodeError, LookupError):
        return
    assert data
    found = read_mail(mail.as_bytes())
    assert found.text.strip() == without_hidden(text).strip()
    assert not found.unreadable


def test_parts_two_hundred_deep_are_read() -> None:
    """Nothing is lost, however deep it lies."""
    data = b"Content-Type: text/plain\r\n\r\nat the bottom\r\n"
    for n in range(200):
        edge = f"b{n}".encode()
        kind = b"Content-Type: multipart/mixed; boundary=" + edge
        data = kind + b"\r\n\r\n--" + edge + b"\r\n" + data + b"\r\n--" + edge + b"--\r\n"
    mail = read_mail(HEAD + data)
    assert mail.text.strip() == "at the bottom"
    assert not mail.unreadable


def test_a_mail_that_is_broken_in_places_loses_only_those() -> None:
    """Unknown charset, text that is no base64, no Date, a name that leads elsewhere."""
    data = (
        HEAD + b"Date: Sat, 31 Feb 2026 25:61:00 CEST\r\n"
        b'Content-Type: multipart/mixed; boundary="x"\r\n\r\n'
        b"--x\r\nContent-Type: text/plain; charset=klingon\r\n\r\nGr\xc3\xbc\xc3\x9fe\r\n"
        b"--x\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\na\xffb\r\n"
        b"--x\r\nContent-Type: application/pdf\r\n"
        b"Content-Disposition: attachment; filename*=utf-8''..%2Fa%0Ab.pdf\r\n\r\n"
        b"no pdf\0\r\n--x--\r\n"
    )
    mail = read_mail(data)
    assert mail.head.date is None
    assert mail.text == "Grüße\n\na\ufffdb"
    taken, remarks = words.taken_files(mail.files)
    assert taken == ()
    assert remarks == (
        "attached, not taken: a file (.pdf), 1 kB: file must be a "
        "PNG, JPEG, GIF or WebP image, a PDF file, or text in UTF-8",
    )


def test_of_a_file_that_was_cut_the_letters_of_its_base64_are_no_text() -> None:
    """Wherever the cut is."""
    mail = EmailMessage(policy=SMTP)
    mail.add_attachment(bytes(range(90)), maintype="application", subtype="zip", filename="a.zip")
    whole = mail.as_bytes().rstrip().rpartition(b"\r\n--")[0].rstrip()
    for length in range(4):
        (file,) = read_mail(whole[: len(whole) - length]).files
        assert bytes(range(80)) in file.data
        assert words.taken_files([file])[0] == ()


def test_an_invitation_is_a_text_and_a_signature_is_none() -> None:
    """Mail programs sign each mail of who signs: none of that makes it outside content."""
    mail = EmailMessage(policy=SMTP)
    mail["From"] = "ann@b.example"
    mail.set_content("put this in")
    mail.add_attachment("BEGIN:VCALENDAR\n", subtype="calendar", filename="party.ics")
    for name, subtype in (("signature.asc", "pgp-signature"), ("key.asc", "pgp-keys")):
        data = b"-----BEGIN PGP\n"
        mail.add_attachment(data, maintype="application", subtype=subtype, filename=name)
    taken, remarks = words.taken_files(read_mail(mail.as_bytes()).files)
    assert [(about.name, about.type) for about, _ in taken] == [("party.ics", "text/plain")]
    assert len(remarks) == 2
    assert all("(.asc), 1 kB: file is a signature or a key" in one for one in remarks)


def test_what_is_attached_is_taken_once_and_a_forwarded_mail_is_not_its_writers_word() -> None:
    inner = EmailMessage(policy=SMTP)
    inner["Subject"] = "Wire the money"
    inner["From"] = "mallory@c.example"
    inner.set_content("at once")
    mail = EmailMessage(policy=SMTP)
    mail["From"] = "ann@b.example"
    mail.set_content("see below")
    mail.add_alternative("<p>see below</p>", subtype="html")
    mail.add_attachment(PNG, maintype="image", subtype="png", filename="Plan für Ann.png")
    mail.add_attachment(PNG, maintype="image", subtype="png", filename="again.png")
    inner["Date"] = "Fri, 20 Nov 2026 08:12:00 +0100"
    inner.add_attachment(PDF, maintype="application", subtype="pdf", filename="bill.pdf")
    deeper = EmailMessage(policy=SMTP)
    deeper["Subject"] = "Deeper"
    deeper.set_content("<p>page</p>", subtype="html")
    inner.add_attachment(deeper)
    mail.add_attachment(inner)
    found = read_mail(mail.as_bytes())
    pages = zip(words.mails_in(found.files), ["", "of a page"], strict=True)
    said = words.words_in(found, "", list(pages))
    taken, remarks = words.taken_files(found.files, said.forwarded)
    assert [(about.name, data) for about, data in taken] == [
        (
            "forwarded.txt",
            b"Forwarded message\nSent: 2026-11-20 07:12 UTC\nFrom: mallory@c.example\n"
            b"Subject: Wire the money\n\nat once\n",
        ),
        ("forwarded-2.txt", b"Forwarded message\nSubject: Deeper\n\nof a page\n"),
        ("Plan für Ann.png", PNG),
        ("bill.pdf", PDF),
    ]
    assert remarks == ()
    assert message(mail.as_bytes()) == "see below\n\n[forwarded: see what is attached]"


OUTLOOK = "From: Mal <mal@c.example>\nSent: Monday\nTo: Ann\nSubject: Pay\n\nPay me"


@pytest.mark.parametrize(
    ("subject", "above", "other"),
    [
        ("Fwd: Pay", "", "---------- Forwarded message ---------\n" + OUTLOOK),
        ("Pay", "Hm.\n-- \nAnn\n\n", "-------- Weitergeleitete Nachricht --------\n" + OUTLOOK),
        ("WG: Pay", "Look\n\n", OUTLOOK),
        ("FW: Re: Pay", "", "________________________________\n" + OUTLOOK),
        ("Fwd: Pay", "See\n\n", "Begin forwarded message:\n\n" + OUTLOOK),
        ("Fwd: Pay", "See\n\n", "\n".join(f"> {one}" for one in OUTLOOK.split("\n"))),
        ("Fwd: Pay", "See\n\n", "> Pay me"),
    ],
)
def test_what_stands_in_a_mail_that_hands_it_on_is_a_text_by_itself(
    subject: str, above: str, other: str
) -> None:
    """As programs write it: what its writer put above it is their word, and nothing else."""
    mail = EmailMessage(policy=SMTP)
    mail["From"], mail["Subject"] = "ann@b.example", subject
    mail.set_content(above + other)
    found = words.words_in(read_mail(mail.as_bytes()), "", [])
    assert [one.text for one in found.forwarded] == [re.sub("(?m)^> ?", "", other)]
    assert found.own == folded(above).strip()
    text = message(mail.as_bytes())
    assert text == "\n\n".join(filter(None, [found.own, "[forwarded: see what is attached]"]))


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("RE: Pay", "No.\n\n________________________________\n" + OUTLOOK),
        ("Re: Fwd: Pay", "No.\n\nOn 3 May Mal <mal@c.example> wrote:\n> ---- Forwarded message ----"
         "\n> From: Eve <e@c.example>\n> Date: now\n> To: Mal\n>\n> Pay"),
        ("Pay", "Send this:\nTo: Ben\nSubject: Hi\n\nI forwarded it."),
    ],
)  # fmt: skip
def test_what_a_mail_answers_is_not_handed_on(subject: str, text: str) -> None:
    """It's known where it came from, and would sway each answer."""
    mail = EmailMessage(policy=SMTP)
    mail["From"], mail["Subject"] = "ann@b.example", subject
    mail.set_content(text)
    assert words.words_in(read_mail(mail.as_bytes()), "", []).forwarded == ()
    assert "forwarded: see" not in message(mail.as_bytes())


def test_an_invitation_is_listed_wherever_it_stands() -> None:
    """A calendar as one of the alternatives is no attachment to the library."""
    mail = EmailMessage(policy=SMTP)
    mail.set_content("Shall we meet?")
    mail.add_alternative("BEGIN:VCALENDAR\nEND:VCALENDAR\n", subtype="calendar")
    assert [(one.name, one.type) for one in read_mail(mail.as_bytes()).files] == [
        ("invitation.ics", "text/calendar")
    ]


def test_a_long_mail_is_cut_and_says_so() -> None:
    text = message(HEAD + b"\r\n" + "ü".encode() * 5000, bytes_max=2000, has_subject=True)
    assert len(text.encode()) <= 2000
    assert text.startswith("Subject: Plan\n\nü")
    assert text.endswith(words.CUT)
    assert message(HEAD + b"\r\n  \r\n") == "[an empty mail]"
    many = [MailFile(name="a.png", type="image/png", data=PNG + bytes([n])) for n in range(12)]
    assert [len(some) for some in words.taken_files(many)] == [10, 2]


# ---------------------------------------------------------------- quotes


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Yes.\n\nAm 01.03.26 um 10:00 schrieb Ann:\n> a\n> b\n", "Yes.\n\n[2 quoted lines]"),
        ("Yes.\n\nOn 3 May 2026, Ann\n<a@b.example> wrote:\n\n> a", "Yes.\n\n[1 quoted line]"),
        ("> a\nno\n> b\nyes", "> a\nno\n> b\nyes"),
        ("> only a quote", "[1 quoted line]"),
        ("-- \nAnn", "-- \nAnn"),
        ("Hi\n-- \nAnn\n> old", "Hi\n\n[a signature]\n\n[1 quoted line]"),
        (
            "Ok.\n\n________________________________\nVon: Bo <bo@c.example>\nGesendet: heute\n"
            "An: Ann\nBetreff: x\n\nold text",
            "Ok.\n\n[7 quoted lines]",
        ),
        ("Name: Ann\nAge: 7\nTown: York\n", "Name: Ann\nAge: 7\nTown: York"),
        ("a -- b\n", "a -- b"),
    ],
)
def test_quotes_and_signatures_are_folded(text: str, left: str) -> None:
    assert folded(text) == left


@up_to(200)
@given(st.text(max_size=200).map(lambda one: one.replace("\r", "")))
def test_what_somebody_wrote_themselves_stays(text: str) -> None:
    own = "\n".join(one for one in text.split("\n") if one[:1] not in (">", "-"))
    own = own.replace(":", "").strip()
    if own:
        assert folded(f"{own}\n\n> old\n> older").startswith(own)


def test_a_quote_of_a_page_is_one_of_its_text() -> None:
    page = "<p>Yes.</p><blockquote type=cite><p>old</p><blockquote>older</blockquote></blockquote>"
    text = marked(page)
    for tag in ("<p>", "</p>", "</blockquote>", "<blockquote>", "<blockquote type=cite>"):
        text = text.replace(tag, "\n")
    assert folded(with_bars(text)).strip() == "Yes.\n\n[2 quoted lines]"


# ---------------------------------------------------------------- who wrote it


@pytest.mark.parametrize(
    "fields",
    [
        [],
        ["ann@b.example", "ann@b.example"],
        ["ann@b.example, bob@b.example"],
        ['"ann@b.example" <mal@c.example>, ann@b.example'],
        ["ann@b.example <mal@c.example>"],
        ['"ann@b.example"@c.example'],
        ["undisclosed:;"],
        ["ann"],
        ["<ann@b.example"],
        ["ann@b.example\x00"],
        ["аnn@b.example"],
    ],
)
def test_only_one_plain_address_is_an_author(fields: list[str]) -> None:
    """X-3: whoever reads it otherwise must not matter."""
    assert author_of(fields)[0] in ("", "ann@b.example")
    assert bool(author_of(fields)[0]) != bool(author_of(fields)[1])
    if fields != ["<ann@b.example"]:
        assert author_of(fields)[0] == ""


@pytest.mark.parametrize(
    ("fields", "is_passed"),
    [
        (["mx.a.example; dmarc=pass header.from=b.example"], True),
        (["mx.a.example 1; dmarc=pass (p=none; dis=none) header.from=B.example"], True),
        (["MX.a.example;\r\n dkim=pass header.d=b.example; spf=fail"], True),
        (["mx.a.example; spf=pass smtp.mailfrom=ann@b.example"], True),
        (["mx.a.example; dkim=pass header.i=@b.example"], True),
        (["mx.a.example; dmarc=fail header.from=b.example; dkim=pass header.d=b.example"], False),
        (["mx.a.example; dmarc=pass header.from=c.example"], False),
        (["mx.a.example; dkim=pass header.d=c.example"], False),
        (["mx.a.example; dkim=pass header.d=example"], False),
        (["mx.a.example; spf=pass smtp.helo=b.example"], False),
        (["mx.a.example; none"], False),
        (["mx.a.example"], False),
        (["mx.c.example; dmarc=pass header.from=b.example"], False),
        (["mx.a.example; dmarc=fail", "mx.a.example; dmarc=pass header.from=b.example"], False),
        (['mx.a.example; x="; dmarc=pass header.from=b.example'], False),
        (["mx.a.example (; dmarc=pass header.from=b.example"], False),
        ([""], False),
        ([], False),
    ],
)
def test_only_the_configured_server_vouches(fields: list[str], is_passed: bool) -> None:
    """RFC 8601: the topmost field of that server, about the domain in From."""
    assert authentic.is_passed(fields, "mx.a.example", "ann@b.example") is is_passed


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        (b"", "personal"),
        (b"Auto-Submitted: no\r\n", "personal"),
        (b"Auto-Submitted: auto-replied; x=1\r\n", "automatic"),
        (b"X-Autoreply: yes\r\n", "automatic"),
        (b"List-Id: <a.b>\r\n", "list"),
        (b"List-Unsubscribe: <https://b.example>\r\n", "list"),
        (b"Precedence: bulk\r\n", "list"),
        (b"Return-Path: <>\r\n", "report"),
        (b"Content-Type: multipart/report; boundary=x\r\n", "report"),
    ],
)
def test_a_machines_mail_is_told_from_a_persons(more: bytes, kind: str) -> None:
    assert read_head(HEAD + more + b"\r\n").kind == kind


# ---------------------------------------------------------------- pairs and places

CODE = "ABCDE-23456"
ANN = ChannelPerson(
    user="ann",
    channel="work",
    code=PairCode(
        address="ann@b.example", hash=pairs.hash_of(CODE), until=NOW + timedelta(hours=1)
    ),
)


def test_a_code_makes_one_address_a_persons_once() -> None:
    paired = pairs.paired_by([ANN], "Ann@B.example", f"here: {CODE.lower()}.", NOW)
    assert paired is not None
    assert (paired.user, paired.code) == ("ann", None)
    assert pairs.user_of([paired], "ANN@b.example") == "ann"
    assert pairs.paired_by([paired], "ann@b.example", CODE, NOW) is None
    assert pairs.paired_by([ANN], "mal@c.example", CODE, NOW) is None
    assert pairs.paired_by([ANN], "ann@b.example", "ABCDE-23457", NOW) is None
    assert pairs.paired_by([ANN], "ann@b.example", CODE, NOW + timedelta(hours=2)) is None
    assert pairs.user_of([ANN], "ann@b.example") is None
    assert pairs.address_for(ANN) is None
    two = ChannelPerson(
        user="ann",
        channel="work",
        addresses=tuple(
            PairedAddress(address=one, at=NOW) for one in ("a@b.example", "c@d.example")
        ),
    )
    assert pairs.address_for(two) == "c@d.example"
    assert pairs.address_for(two, "A@b.example") == "a@b.example"
    assert pairs.address_for(two, "x@b.example") == "c@d.example"


@up_to(200)
@given(
    st.lists(st.integers(0, 30), max_size=60, unique=True),
    st.integers(0, 60),
    st.data(),
)
def test_a_mailbox_that_counts_anew_loses_and_doubles_nothing(
    came: list[int], read: int, data: st.DataObject
) -> None:
    """Mails in any order of their time; some read; the UIDs change; all are looked at again."""
    box = [(f"mail {n}", NOW + timedelta(seconds=one)) for n, one in enumerate(came)]
    now = place.begun(7, 1, (), are_all=True)
    taken: list[str] = []
    for uid, (name, at) in enumerate(box[:read], 1):
        taken.append(name)
        now = place.passed(now, uid, name, at)
    order = data.draw(st.permutations(box))
    now = place.found(now, 8, len(order) + 1)
    assert now.uid == 0
    for uid, (name, at) in enumerate(order, 1):
        if not place.is_known(now, uid, name, at):
            taken.append(name)
        now = place.passed(now, uid, name, at)
    assert sorted(taken) == sorted(name for name, _ in box)
    assert place.found(now, 8, 99) == now
    # What comes from now on is new, even if it looks like an old one.
    assert not place.is_known(now, len(order) + 1, "mail 0", NOW)


def test_of_what_was_dealt_with_only_so_much_is_kept() -> None:
    before = [(f"old {n}", NOW - timedelta(seconds=n)) for n in range(3)]
    now = place.begun(7, 100, before, are_all=False)
    assert now.uid == 99
    anew = place.found(now, 8, 50)
    for name, at in (*before, ("older", NOW - timedelta(days=1))):
        assert place.is_known(anew, 1, name, at)
    assert not place.is_known(anew, 1, "new", NOW)
    assert not place.is_known(place.begun(7, 1, (), are_all=True), 1, "new", NOW)
    for n in range(place.KNOWN_MAX + 50):
        now = place.passed(now, 100 + n, f"mail {n}", NOW + timedelta(seconds=n))
    assert len(now.known) == place.KNOWN_MAX
    again = place.found(now, 8, 2000)
    for n in (0, 49, 50, place.KNOWN_MAX + 49):
        assert (
            place.is_known(again, 1, f"mail {n}", NOW + timedelta(seconds=n)) == (n != 49)
            or n == 49
        )
    assert not place.is_known(again, 1, "new", NOW + timedelta(seconds=9999))
    assert not place.is_known(again, 2000, "mail 60", NOW + timedelta(seconds=60))
