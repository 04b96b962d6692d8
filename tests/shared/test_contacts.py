"""Whom a person knows, from lists that others may have written (FLOW F-6, X-3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.carddav_server import PASSWORD, CardDavServer, card
from tests.support.cli import Cli
from tests.support.examples import up_to
from vigil.clock import SystemClock
from vigil.contacts import carddav, kept, record, source
from vigil.contacts.cards import read_cards
from vigil.contacts.kept import KnownContacts
from vigil.contacts.record import Contact, ContactList, found_in, key_of
from vigil.contacts.section import ContactSource
from vigil.contacts.source import ContactReader, ContactsUnread
from vigil.errors import ConfigError
from vigil.settings import config
from vigil.words.own import OwnWords
from vigil.words.rule import Book, book_of

BEN = "ben@example.org"
NOW = SystemClock().now()

# ---------------------------------------------------------------- cards

APPLE = card(
    "Ben Müller",
    "NICKNAME:Benny",
    "item1.EMAIL;type=INTERNET;type=pref:Ben@example.org",
    "item1.X-ABLabel:_$!<Other>!$_",
    "EMAIL;type=INTERNET;type=HOME:b2@example.org",
    "TEL;type=CELL;type=VOICE:+43 660 1234567",
    "NOTE:long\\, and folded",
    "  here",
)
FOUR = (
    "BEGIN:VCARD\r\nVERSION:4.0\r\nFN:Ruth O'Neil\r\nN:O'Neil;Ruth;;;ing. jr\r\n"
    "EMAIL;PREF=2:old@example.org\r\nEMAIL;PREF=1:ruth@example.org\r\n"
    'TEL;VALUE=uri;TYPE="voice,home":tel:+1-555-555-5555;ext=5\r\nEND:VCARD\r\n'
)
OLD = (
    "BEGIN:VCARD\r\nVERSION:2.1\r\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg\r\n"
    "FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:J=C3=B6rg =\r\nM=C3=BCller\r\n"
    "TEL;CELL:0660 12\r\nEMAIL;INTERNET:j@example.org\r\nEND:VCARD\r\n"
)
GROUP = "BEGIN:VCARD\r\nVERSION:4.0\r\nKIND:group\r\nFN:Team\r\nEMAIL:t@b.org\r\nEND:VCARD\r\n"
BROKEN = card("Eve", "this is no line", "EMAIL:eve@example.org")


def test_cards_of_all_versions_are_read() -> None:
    """A broken line costs itself; groups, and who can't be reached, are nobody."""
    plain = "BEGIN:VCARD\nVERSION:4.0\nFN:Al Gray\nEMAIL:al@example.org\nEND:VCARD\n"
    text = (
        plain
        + APPLE
        + "junk\r\n"
        + FOUR
        + GROUP
        + OLD
        + BROKEN
        + card("Nobody")
        + "BEGIN:VCARD\r\nx"
    )
    read = read_cards(text.encode())
    assert {one.name: (one.names, one.addresses, one.phones) for one in read.contacts} == {
        "Ben Müller": (("Benny",), (BEN, "b2@example.org"), ("+43 660 1234567",)),
        "Ruth O'Neil": (
            ("Ruth", "O'Neil"), ("ruth@example.org", "old@example.org"), ("+1-555-555-5555",)
        ),
        "Jörg Müller": (("Jörg", "Müller"), ("j@example.org",), ("0660 12",)),
        "Eve": ((), ("eve@example.org",), ()),
        "Al Gray": (("Al", "Gray"), ("al@example.org",), ()),
    }  # fmt: skip
    assert read.left_out == 1
    by_name = {one.name: one for one in read.contacts}
    assert by_name["Ben Müller"].has_first
    book = book_of(record.rows_of(read.contacts))
    assert book.names["ruth"] == {"ruth@example.org", "+1-555-555-5555"}
    assert book.has("old@example.org")
    assert "müller" in book.names  # Jörg's: Ben's card has no parts of his name
    assert read_cards((APPLE + APPLE).encode()).contacts == read_cards(APPLE.encode()).contacts


@up_to(300)
@given(st.lists(st.sampled_from(APPLE.split("\r\n")) | st.text(max_size=40), max_size=20))
def test_anything_is_read(lines: list[str]) -> None:
    data = "\r\n".join(["BEGIN:VCARD", *lines, "END:VCARD"]).encode("utf-8", "replace")
    for one in read_cards(data).contacts:
        assert one.addresses or one.phones
        assert all(name == record.cleaned_name(name) for name in one.names)
        assert all(each == record.cleaned_address(each) for each in one.addresses)


@pytest.mark.parametrize(
    "line",
    [
        "PHOTO;ENCODING=b;TYPE=JPEG:/9j/4AAQSkZJR",
        "KEY;ENCODING=BASE64:!!!",
        "NOTE;CHARSET=X-NONE;ENCODING=QUOTED-PRINTABLE:=41",
        "NOTE;ENCODING=8BIT:x",
        "NOTE;ENCODING=QUOTED-PRINTABLE:not a name=\r\nFN:Mal",
        "NOTE:folded\r\n FN:Mal",
    ],
)
def test_what_is_not_read_of_a_card_costs_nobody_their_name(line: str) -> None:
    (found,) = read_cards(card("Ben Ray", line, f"EMAIL:{BEN}").encode()).contacts
    assert (found.name, found.addresses) == ("Ben Ray", (BEN,))


def test_what_is_written_as_it_stands_is_read_as_it_stands() -> None:
    """The library takes each of these for Base64, and makes other bytes of some."""
    text = card(
        "Anna Bell",
        "NICKNAME;ENCODING=8BIT:Nana",
        "TEL;CELL;7BIT:12345678",
        "EMAIL;encoding=7bit;INTERNET:anna@example.org",
    )
    (found,) = read_cards(text.replace("FN:", "FN;CHARSET=UTF-8;ENCODING=8BIT:").encode()).contacts
    assert found.name == "Anna Bell"
    assert "Nana" in found.names
    assert (found.phones, found.addresses) == (("12345678",), ("anna@example.org",))


def test_nothing_of_a_card_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The library tells of lines that it can't read, as they stand."""
    read_cards(card("Ben Ray", f"EMAIL;=:{BEN}").encode())
    assert caplog.records == []


def test_a_card_of_a_character_set_that_there_is_not_costs_no_other() -> None:
    strange = card("x").replace("FN:x", "FN;CHARSET=X-NONE;ENCODING=QUOTED-PRINTABLE:=41")
    read = read_cards((strange + card("Ben Ray", f"EMAIL:{BEN}")).encode())
    assert ([one.name for one in read.contacts], read.left_out) == (["Ben Ray"], 1)


def test_of_too_many_the_same_are_kept_whatever_their_order() -> None:
    many = [Contact(name=f"P{n:05}", addresses=(f"p{n}@b.org",)) for n in range(6000)]
    kept_, left_out = record.limited(many)
    assert (len(kept_), left_out) == (5000, 1000)
    assert record.limited(reversed(many)) == (kept_, left_out)
    large = [Contact(name="n" * 80, addresses=(f"{n}@{'b' * 200}.org",)) for n in range(5000)]
    assert 0 < len(record.limited(large)[0]) < 3000


def test_whom_a_name_means() -> None:
    ben, rubens = Contact(name="Ben Ray", names=("Ben",)), Contact(name="Ruth Rubens")
    ada = Contact(name="Ada", addresses=("ada@benson.example",))
    everybody = (ben, rubens, ada)
    for query, found in (
        ("Ben", [ben]), ("ben ray", [ben]), ("ru", [rubens]), ("ruth r", [rubens]),
        ("bens", [ada]), ("ADA@benson.example", [ada]), ("enson", []), (" ", []), ("Ru x", []),
    ):  # fmt: skip
        assert found_in(everybody, query) == found, query


# ---------------------------------------------------------------- attacks


def known(
    contacts: dict[str, tuple[Contact, ...]], sources: dict[str, ContactSource], **of: Any
) -> Book:
    found = KnownContacts()
    found.sources = sources
    for name, people in contacts.items():
        one = ContactList(user="ann", source=name, at=NOW, contacts=people, **of)
        found.take(key_of("ann", name), kept.msgspec.json.encode(one))
    return found.book("ann", book_of([(["Ruth"], ["ruth@example.org"])]))


MAL = Contact(name="Ben", addresses=("mal@c.example",))
TRUE_BEN = Contact(name="Ben Ray", names=("Ben",), addresses=(BEN,))
OWN = ContactSource(user="ann", file="a.vcf", is_mine_alone=True)
SHARED = ContactSource(user="ann", file="b.vcf")
SAID = OwnWords(["Send that to Ben"])


def test_whom_others_put_into_a_list_is_not_known() -> None:
    """X-3: not by address, nor by the name of a friend; and the friend's still counts."""
    book = known({"own": (TRUE_BEN,), "all": (MAL,)}, {"own": OWN, "all": SHARED})
    assert book.has(BEN)
    assert book.is_named(BEN, SAID)
    assert not book.has("mal@c.example")
    assert not book.is_named("mal@c.example", SAID)
    assert book.has("ruth@example.org"), "whom the configuration names stays"


@pytest.mark.parametrize(
    ("sources", "of"),
    [
        ({"own": OWN}, {"is_open": True}),
        ({"own": ContactSource(user="bob", file="a", is_mine_alone=True)}, {}),
        ({}, {}),
    ],
    ids=["others can write the file", "somebody else's by now", "no longer configured"],
)
def test_a_list_counts_only_as_configured_and_where_nobody_else_writes(
    sources: dict[str, ContactSource], of: dict[str, Any]
) -> None:
    assert not known({"own": (TRUE_BEN,)}, sources, **of).has(BEN)


def test_two_of_one_name_are_meant_by_neither() -> None:
    """Whoever got into her own list under a friend's name is reached by her words alone."""
    book = known({"own": (TRUE_BEN,), "more": (MAL,)}, {"own": OWN, "more": OWN})
    assert not book.is_named(BEN, SAID)
    assert not book.is_named("mal@c.example", SAID)
    assert known({"own": (MAL, TRUE_BEN)}, {"own": OWN}).is_named(BEN, SAID) is False


def test_an_entry_elsewhere_than_it_says_is_nobody() -> None:
    found = KnownContacts()
    found.sources = {"own": OWN}
    one = ContactList(user="ann", source="own", at=NOW, contacts=(TRUE_BEN,))
    found.take(key_of("bob", "own"), kept.msgspec.json.encode(one))
    found.take(key_of("ann", "own"), b"{")
    assert found.of("ann") == []


@pytest.mark.parametrize(
    "lines",
    [
        ["EMAIL:ben@example.org\\, mal@c.example"],
        ["EMAIL:ben@example.org <mal@c.example>"],
        ["EMAIL:ben@example.org\\nmal@c.example"],
        ['EMAIL:"ben@example.org"@c.example'],
        ["TEL:tel:call me"],
    ],
)
def test_what_is_no_plain_address_is_none(lines: list[str]) -> None:
    assert read_cards(card("Ben", *lines).encode()).contacts == ()


@pytest.mark.parametrize("name", ["Ben\u200b", "B\u202een", "ben@example.org", "<Ben>", "x" * 81])
def test_what_looks_like_another_name_is_none(name: str) -> None:
    (one,) = read_cards(card(name, "EMAIL:mal@c.example").encode()).contacts
    assert (one.name, one.names) == ("mal@c.example", ())


def test_a_file_that_agents_or_others_write_does_not_count(tmp_path: Path) -> None:
    place = tmp_path / "workspaces/vigil/ann"
    place.mkdir(parents=True)
    (place / "a.vcf").write_text(APPLE)
    (tmp_path / "link.vcf").symlink_to(place / "a.vcf")
    for file in ("workspaces/vigil/ann/a.vcf", "link.vcf", "./x/../workspaces/vigil/ann/a.vcf"):
        with pytest.raises(ContactsUnread, match="where agents write"):
            source.read_file(file, tmp_path)
    own = tmp_path / "own.vcf"
    own.write_text(APPLE)
    for mode, is_open in ((0o644, False), (0o664, True), (0o646, True)):
        own.chmod(mode)
        assert source.read_file("own.vcf", tmp_path) == (own.read_bytes(), is_open)
    own.chmod(0o600)
    tmp_path.chmod(0o777)
    assert source.read_file("own.vcf", tmp_path)[1], "somebody could put another in its place"
    with pytest.raises(ContactsUnread, match="can't be read: No such file"):
        source.read_file("gone.vcf", tmp_path)


def test_an_answer_that_declares_types_is_refused() -> None:
    """Harmless here: what could grow in a reader of XML is refused before it's read."""
    with pytest.raises(carddav.BookAway, match="types of its own"):
        carddav.cards_of(b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')
    with pytest.raises(carddav.BookAway, match="no XML"):
        carddav.cards_of(b"<a>")


# ---------------------------------------------------------------- a server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CardDavServer]:
    with CardDavServer(tmp_path_factory.mktemp("radicale")).running() as running:
        yield running


def reader(server: CardDavServer, home: Path, **changes: Any) -> ContactReader:
    values = {"url": server.url, "login": "ann", "password": PASSWORD} | changes
    one = ContactSource(user="ann", **values)
    return ContactReader("book", one, home, SystemClock(), ())


async def test_an_address_book_of_a_real_server_is_read(
    server: CardDavServer, tmp_path: Path
) -> None:
    server.put("ben", APPLE)
    server.put("eve", card("Eve & <co>", "EMAIL:eve@example.org"))
    one = reader(server, tmp_path)
    found = await one.read()
    assert [contact.addresses for contact in found.contacts] == [
        (BEN, "b2@example.org"), ("eve@example.org",)
    ]  # fmt: skip
    server.drop("eve")
    assert len((await one.read()).contacts) == 1


async def test_a_wrong_password_is_shown_once_until_it_is_another(
    server: CardDavServer, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("wrong")
    one = reader(server, tmp_path, password="", password_file=str(secret))
    for reason in ("the server refuses", "refused user name or password before", "before"):
        with pytest.raises(ContactsUnread, match=reason) as refused:
            await one.read()
        assert "wrong" not in str(refused.value)
    assert server.log().count("Failed login attempt") == 1
    secret.write_text(PASSWORD)
    await one.read()


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/ann/none/", "the server answered 404"),
        ("/.well-known/carddav/", "somewhere else|answered"),
    ],
)
async def test_what_is_no_address_book_is_said(
    server: CardDavServer, tmp_path: Path, path: str, reason: str
) -> None:
    url = f"http://127.0.0.1:{server.port}{path}"
    with pytest.raises(ContactsUnread, match=reason):
        await reader(server, tmp_path, url=url).read()


async def test_a_server_that_is_away_or_silent_is_said(tmp_path: Path) -> None:
    gone = ContactSource(user="ann", url="http://127.0.0.1:9/b/", timeout_s=5.0)
    with pytest.raises(ContactsUnread, match="nothing listens there"):
        await ContactReader("b", gone, tmp_path, SystemClock(), ()).read()
    with pytest.raises(ContactsUnread, match="its address"):
        await ContactReader("b", gone, tmp_path, SystemClock(), (9,)).read()


# ---------------------------------------------------------------- the configuration


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "one of people, file and url"),
        ('file = "a"\nurl = "https://a.example/"', "one of people, file and url"),
        ('url = "https://a.example/x"', "url: of an address book must end with /"),
        ('url = "https://ann:pw@a.example/"', "user name or password"),
        ('file = "a"\nlogin = "b"\npassword = "c"', "login: goes with url only"),
        ('url = "https://a.example/"\nlogin = "b"', "password: must be given once"),
        ('url = "http://nas.example/"\nlogin = "b"\npassword = "c"', "must begin with https://"),
        ('people = ["Ben <>"]', "has no address"),
        ('people = ["Ben <b@c.org>"]\nrefresh_s = 1', "refresh_s"),
        ('file = "a"\nuser = "a b"', "user"),
    ],
)
def test_a_list_that_cannot_work_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    """X-6: with the section and the field, and no secret."""
    (tmp_path / "vigil.toml").write_text(f"[contacts.friends]\n{text}\n")
    with pytest.raises(ConfigError) as refused:
        config.load({}, home=tmp_path)
    assert "contacts" in str(refused.value)
    assert reason in str(refused.value)
    assert "pw" not in str(refused.value)


def test_lists_are_added_and_removed_by_a_command(tmp_path: Path) -> None:
    """P-2: what can't work isn't written; a list that others may write says what that means."""
    cli = Cli(tmp_path)
    ben = ("--person", f"Ben <{BEN}>", "--user", "ann")
    assert "Whom it has" not in cli("contacts", "add", "friends", *ben).stdout
    assert "--mine-alone" in cli("contacts", "add", "f", "--file", "a.vcf", "--user", "ann").stdout
    found = config.load({}, home=tmp_path).config.contacts
    assert found["friends"] == ContactSource(user="ann", people=(f"Ben <{BEN}>",))
    assert found["f"].file.endswith("/a.vcf")
    cli("contacts", "add", "g", "--user", "ann", code=2)
    cli("contacts", "remove", "friends")
    cli("contacts", "remove", "friends", code=3)
    assert set(config.load({}, home=tmp_path).config.contacts) == {"f"}
