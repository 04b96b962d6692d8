"""`vigil calendar`: added after it was read, listed, tested, removed; `vigil doctor` on each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.calendars import calendar, event
from tests.support.cli import Cli, eventually, running_vigil
from vigil.settings import config


def mine(cli: Cli) -> dict[str, Any]:
    (found,) = cli.json("calendar")["calendars"]
    return dict(found)


def test_a_calendar_from_its_file_to_its_state(tmp_path: Path) -> None:
    """D-3, P-2: what can't be read isn't added; what is kept is told with its problem."""
    soon = datetime.now(UTC) + timedelta(hours=3)
    file = tmp_path / "my.ics"
    cli = Cli(tmp_path / "home")
    missing = cli("calendar", "add", "mine", "--file", str(file), code=3)
    assert "the file can't be read: No such file or directory" in missing.stderr
    file.write_text(calendar(event("a", f":{soon:%Y%m%dT%H%M%SZ}", title="Dentist"),
                             event("b", ";TZID=Nowhere:20261201T090000")))  # fmt: skip
    added = cli("calendar", "add", "mine", "--file", str(file)).stdout
    assert "2 events; event " in added
    assert "its zone 'Nowhere' isn't known" in added
    known = config.load({}, home=cli.home).config.calendars["mine"]
    assert (known.kind, known.file, known.user) == ("file", str(file), "me")
    assert "Dentist" in cli("calendar", "test", "mine").stdout
    (before,) = cli.json("calendar")["calendars"]
    assert (before["name"], before["state"]) == ("mine", "not_running")
    wrong = cli("calendar", "add", "x", "--url", "http://a.example/x/", "--login", "a",
                "--password-file", str(file), code=2)  # fmt: skip
    assert "must begin with https:// where a password is sent" in wrong.stderr
    with running_vigil(cli.home) as running:
        eventually(lambda: mine(running)["state"] == "synced", timeout_s=60)
        assert mine(running)["events"] == 2
        checks = {one["name"]: one for one in running.json("doctor")["checks"]}
        assert checks["calendar mine"]["state"] == "warn"
        assert "'Nowhere'" in checks["calendar mine"]["found"]
        facts = running.json("facts")["sources"]
        assert [one["source"] for one in facts] == ["calendar mine"]
    assert list((cli.home / "calendars").rglob("*.mine"))
    cli("calendar", "remove", "mine")
    assert not list((cli.home / "calendars").rglob("*.mine"))
    assert "No calendars." in cli("calendar").stderr
    assert "there is no calendar 'mine'" in cli("calendar", "remove", "mine", code=3).stderr
