"""What a section ``[calendars.NAME]`` may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from vigil.errors import ConfigError
from vigil.settings import config

DAV = 'kind = "caldav"\nurl = "https://dav.example/ann/work/"\n'
FILE = 'kind = "file"\nfile = "a.ics"\n'


def loaded(home: Path, text: str, name: str = "work") -> config.Config:
    (home / "vigil.toml").write_text(f"[calendars.{name}]\n{text}\n")
    return config.load({}, home=home).config


def test_each_kind_is_read(tmp_path: Path) -> None:
    """D-3: any number, each of a person and an agent."""
    text = DAV + 'login = "ann"\npassword = "p"\nis_writable = true\nuser = "ann"\n'
    text += '[calendars.holidays]\nkind = "ics"\nurl = "webcal://a.example/h.ics"\n'
    found = loaded(tmp_path, f"{text}[calendars.notes]\n{FILE}").calendars
    assert {name: one.kind for name, one in found.items()} == {
        "work": "caldav", "holidays": "ics", "notes": "file",
    }  # fmt: skip
    assert str(found["work"].scope) == str(type(found["work"].scope)("vigil", "ann"))
    assert "dav.example" not in repr(found["work"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('kind = "caldav"', "url: is missing: where the collection of a CalDAV server is"),
        ('kind = "caldav"\nurl = "https://a.example/x"', "url: of a collection must end with /"),
        ('kind = "ics"\nurl = "ftp://a.example/x"', "url: must begin with http:// or https://"),
        ('kind = "ics"\nurl = "https://ann:pw@a.example/x"', "user name or password"),
        ('kind = "ics"\nurl = "https://a.example/x#y"', "url: may have no #fragment"),
        ('kind = "ics"\nurl = "https://a.example/x"\nfile = "a"', "file: doesn't go with"),
        ('kind = "ics"\nurl = "https://a.example/x"\nis_writable = true', "is_writable: goes with"),
        ('kind = "file"', "file: is missing"),
        (FILE + 'login = "a"\npassword = "b"', "login: doesn't go with kind = 'file'"),
        (FILE + 'url = "https://a.example/"', "url: doesn't go with kind = 'file'"),
        (FILE + 'ca_file = "ca.pem"', "ca_file: doesn't go with kind = 'file'"),
        (FILE + "poll_s = 5", "poll_s: must be at least 10"),
        (FILE + 'zone = "Mars/Olympus"', "zone: 'Mars/Olympus' is no IANA time zone"),
        (FILE + 'user = "team"', "user must be 'team' with the agent of a team"),
        (FILE + 'user = "a b"', "userId"),
        (FILE + "bytes_max = 1", ">= 65536"),
        (FILE + "pol_s = 60", "did you mean poll_s?"),
        (DAV + 'login = "ann"', "password: is missing: set it, or password_file"),
        (DAV + 'password = "p"', "login: is missing beside a password"),
        (DAV + 'login = "a:b"\npassword = "p"', "login: may hold no colon"),
        (DAV + 'login = "a"\npassword = "p"\npassword_file = "f"', "password: is given twice"),
        (
            'kind = "ics"\nurl = "http://a.example/x"\nlogin = "a"\npassword = "secret"',
            "url: must begin with https:// where a password is sent",
        ),
    ],
)
def test_a_mistake_is_told_with_its_key(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)
    assert reason in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_name_has_an_end(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at most 32 characters"):
        loaded(tmp_path, FILE, "x" * 33)
