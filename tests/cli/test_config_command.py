"""`vigil config`: settings looked up, changed and taken back, with the file's comments kept."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.cli import Cli
from tests.support.examples import up_to
from vigil.cli.exits import NotReady
from vigil.edits import toml_sections
from vigil.errors import ConfigError
from vigil.settings import config

FILE = """\
# Mine.
[autonomy]
enabled = true  # yes

[models.big]
provider = "openai"
prices = [
  {since = 2026-01-01, input = 3, output = 15},  # list price
]

# About me.
[person]
timezone = "Europe/Berlin"
# quiet_hours = "22:00-07:00"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "vigil.toml"
    file.write_text(FILE)
    return file


def test_a_setting_that_is_none_any_more_is_told_and_does_no_harm(
    tmp_path: Path, file: Path
) -> None:
    with file.open("a") as more:
        more.write("[memory]\nweight_text = 'heavy'\npause_s = 5\n")
    variable = {"VIGIL_MEMORY__WEIGHT_GRAPH": "0.1", "VIGIL_MEMORY__WARM_WAIT_S": "7"}
    settings = config.load(variable, home=tmp_path)
    memory = settings.config.memory
    assert (memory.pause_s, memory.warm_wait_s) == (5, 7.0)
    gone = "has no meaning any more: it is a constant of how memories are found"
    assert settings.remarks == (
        f"vigil.toml: memory.weight_text {gone}",
        f"VIGIL_MEMORY__WEIGHT_GRAPH: memory.weight_graph {gone}",
    )
    cli = Cli(tmp_path)
    (check,) = [one for one in cli.json("doctor", code=None)["checks"] if one["name"] == "config"]
    assert (check["state"], check["advice"]) == ("warn", f"vigil.toml: memory.weight_text {gone}")
    assert gone in cli("config", "set", "memory.weight_text", "1", code=1).stderr
    assert gone in cli("config", "get", "memory.weight_text", code=3).stderr
    assert (
        f"is taken out: memory.weight_text {gone}"
        in cli("config", "unset", "memory.weight_text").stderr
    )
    assert config.load({}, home=tmp_path).remarks == ()


def test_a_variable_of_what_the_file_has_as_no_section_is_no_crash(
    tmp_path: Path, file: Path
) -> None:
    """Services that follow the file would end doing so, and nobody be told."""
    file.write_text("memory = 3\n")
    for key in ("WEIGHT_VECTOR", "WEIGHT_TEXT"):
        with pytest.raises(ConfigError, match="memory: must be a section"):
            config.load({f"VIGIL_MEMORY__{key}": "1"}, home=tmp_path)


def test_a_setting_is_changed_and_all_else_stays(tmp_path: Path, file: Path) -> None:
    cli = Cli(tmp_path)
    cli("config", "set", "person.quiet_hours", "23:00-06:30")
    cli("config", "set", "autonomy.enabled", "false")
    cli("config", "set", "models.big.model", "5")
    cli("config", "set", "people.ann.timezone", "Asia/Tokyo")
    cli("config", "unset", "models.big.provider")
    text = file.read_text("utf-8")
    assert [line for line in FILE.splitlines() if "#" in line and "yes" not in line] == [
        line for line in text.splitlines() if "#" in line and "yes" not in line
    ]
    assert "enabled = false  # yes" in text
    found = tomllib.loads(text)
    assert found["person"] == {"timezone": "Europe/Berlin", "quiet_hours": "23:00-06:30"}
    assert found["models"]["big"]["model"] == "5", "what must be a text is one"
    assert "provider" not in found["models"]["big"]
    assert found["people"] == {"ann": {"timezone": "Asia/Tokyo"}}
    assert cli("config", "get", "person.quiet_hours").stdout == "23:00-06:30\n"
    assert cli("config", "get", "cortex.cron_max_turns").stdout == "30\n"


def test_nothing_that_is_listed_or_set_shows_a_secret(tmp_path: Path, file: Path) -> None:
    """Also where it is an address, a header, a variable, an argument or one of several."""
    secret = "whsec_" + "A" * 32
    hidden = "hidden-4711"
    file.write_text(
        FILE
        + f"""
[hooks.ci]
user = "me"
thread = "ci"
secrets = ["{secret}"]
[calendars.work]
kind = "ics"
user = "me"
url = "https://calendar.example/{hidden}/basic.ics"
[channels.chat]
url = "https://me:{hidden}@hooks.example/services/{hidden}"
secret = "{secret}"
[mcp.files]
url = "https://mcp.example/sse?key={hidden}"
headers = {{Authorization = "Bearer {hidden}"}}
[mcp.here]
command = "files"
args = ["--key", "{hidden}"]
env = {{KEY = "{hidden}"}}
[watch.news]
source = "feed:https://news.example/feed?key={hidden}"
user = "me"
"""
    )
    cli = Cli(tmp_path)
    for listed in (cli("config").stdout, str(cli.json("config", "list", "--all"))):
        assert hidden not in listed
        assert secret not in listed
    told = {one["name"]: one["value"] for one in cli.json("config")["settings"]}
    assert told["calendars.work.url"] == "https://calendar.example/…"
    assert told["watch.news.source"] == "feed:https://news.example/…"
    assert (
        hidden
        not in cli("config", "set", "channels.chat.url", f"https://b.example/{hidden}").stdout
    )
    assert cli("config", "get", "channels.chat.url").stdout == f"https://b.example/{hidden}\n"


def test_what_is_set_is_listed_with_where(tmp_path: Path, file: Path) -> None:
    file.write_text(FILE + '\n[channels.hook]\nurl = "https://example.org/h"\nsecret = "whsec_' +
                    "A" * 32 + '"\n')  # fmt: skip
    found = Cli(tmp_path, VIGIL_PORT="9000").json("config")["settings"]
    told = {one["name"]: (one["value"], one["from"]) for one in found}
    assert told["gateway.port"] == (9000, "VIGIL_PORT")
    assert told["person.timezone"] == ("Europe/Berlin", "vigil.toml")
    assert told["channels.hook.secret"] == ("…", "vigil.toml")
    assert "model.main" not in told
    every = Cli(tmp_path).json("config", "list", "--all")["settings"]
    assert {"model.main", "memory.recall_tokens", "models.big.prices"} <= {
        one["name"] for one in every
    }


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("set", "gateway.port", "abc"), 1, "gateway.port"),
        (("set", "gateway.prot", "5"), 1, "did you mean port"),
        (("set", "model", "5"), 2, "SECTION.KEY"),
        (("set", "models.main", "5"), 2, "SECTION.NAME.KEY"),
        (("set", "person.timezone", "Mars/Base"), 1, "Mars/Base"),
        (("get", "modle.main"), 3, "did you mean model.main"),
        (("unset", "budget.daily_usd"), 3, "isn't set"),
        (("unset", "models.big.prices.since"), 3, "isn't set"),
    ],
)
def test_what_can_not_be_is_told_and_changes_nothing(
    tmp_path: Path, file: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    done = Cli(tmp_path)("config", *words, code=code)
    assert said in done.stderr
    assert file.read_text() == FILE


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("text", ["", "# Empty.\n", FILE, "[person]", 'person.language = "de"\n'])
def test_a_file_of_any_form_says_what_was_meant(tmp_path: Path, text: str, end: str) -> None:
    file = tmp_path / "vigil.toml"
    file.write_bytes(text.replace("\n", end).encode())
    before = tomllib.loads(text)
    toml_sections.set_value(file, ("person", "language"), "fr", remark="Asked for.")
    toml_sections.set_value(file, ("model", "max_tokens"), 2000)
    found = tomllib.loads(file.read_text("utf-8"))
    assert found["person"] == before.get("person", {}) | {"language": "fr"}
    assert found["model"] == {"max_tokens": 2000}
    assert {name: found[name] for name in before if name != "person"} == {
        name: value for name, value in before.items() if name != "person"
    }
    toml_sections.unset(file, ("model", "max_tokens"))
    with pytest.raises(NotReady):
        toml_sections.unset(file, ("model", "max_tokens"))


def test_a_section_is_no_key(tmp_path: Path, file: Path) -> None:
    with pytest.raises(ConfigError, match="section"):
        toml_sections.unset(file, ("models", "big"))
    with pytest.raises(ConfigError):
        toml_sections.set_value(file, ("person", "timezone", "zone"), "UTC")
    assert file.read_text() == FILE


def test_a_mistake_elsewhere_hides_no_setting(tmp_path: Path, file: Path) -> None:
    """P-2: what is right is shown, and what is wrong is told beside it; never a default in place
    of what can't be read.
    """
    file.write_text(FILE.replace("Europe/Berlin", "Europe/Berln") + "[memory]\npause_s = 61\n")
    cli, wrong = Cli(tmp_path), "timezone 'Europe/Berln' is no IANA time zone"
    for key, value in {"memory.pause_s": "61", "models.big.provider": "openai"}.items():
        done = cli("config", "get", key)
        assert done.stdout == f"{value}\n"
        assert wrong in done.stderr
    refused = cli("config", "get", "person.timezone", code=1)
    assert refused.stdout == ""
    assert wrong in refused.stderr
    listed = cli("config", "list", "--all")
    assert "person.timezone" not in listed.stdout
    assert "memory.pause_s" in listed.stdout
    assert wrong in listed.stderr
    for command in (("channels",), ("agents",), ("skills",), ("mail",), ("mailbox",)):
        assert wrong in cli(*command).stderr, command
    cli("config", "get", "memory.pause_s", code=1, VIGIL_MEMORY__PAUSE_S="many")
    file.write_text("[gateway\n")
    assert "vigil.toml" in cli("config", "get", "memory.pause_s", code=1).stderr


def test_mistakes_are_mended_one_by_one(tmp_path: Path, file: Path) -> None:
    """P-2: a change is taken if it leaves fewer of them, and what is left is told."""
    file.write_text(FILE.replace("Europe/Berlin", "Mars") + "[gateway]\nprot = 1\n")
    cli = Cli(tmp_path)
    assert "Mars" in cli("config", "set", "autonomy.enabled", "false", code=1).stderr
    assert "enabled = true" in file.read_text()
    assert "Mars" in cli("config", "unset", "gateway.prot").stderr
    done = cli("config", "set", "person.timezone", "Europe/Berlin")
    assert "vigil: " not in done.stderr
    assert config.load({}, home=tmp_path).problems == ()


VALUES = st.recursive(
    st.text() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@up_to(300)
@example({"🙂": "a\x7f\u2028\x85"})
@given(VALUES)
def test_whatever_is_written_is_read_as_that(value: Any) -> None:
    assert tomllib.loads(f"a = {toml_sections._value(value)}") == {"a": value}
