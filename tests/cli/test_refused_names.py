"""A name that nothing has is refused with the one that is near, or with those that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli
from vigil.errors import ConfigError
from vigil.settings import config

FILE = """
[channels.pager]
kind = "ntfy"
url = "https://ntfy.example/abcdefghijkl"
user = "ann"
[channels.post]
kind = "mail"
address = "a@b.example"
smtp_host = "b.example"
imap_host = "b.example"
password = "x"
user = "ann"
[mcp.wiki]
command = "nonesuch"
[models.local]
provider = "openai"
base_url = "http://127.0.0.1:9/v1"
[calendars.work]
kind = "caldav"
url = "https://b.example/cal/"
user = "ann"
login = "ann"
password = "x"
[contacts.friends]
file = "/nonesuch"
user = "ann"
[mailboxes.desk]
address = "a@b.example"
smtp_host = "b.example"
imap_host = "b.example"
password = "x"
user = "ann"
[a2a.writer]
url = "https://b.example/a"
"""
NOTES = "---\nname: notes\ndescription: Takes notes.\n---\nWrite them down.\n"


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A home with one of each, and nothing that runs."""
    root = tmp_path_factory.mktemp("names")
    (root / "home").mkdir()
    (root / "home/vigil.toml").write_text(FILE)
    (root / "notes").mkdir()
    (root / "notes/SKILL.md").write_text(NOTES)
    cli = Cli(root / "home")
    cli("skills", "add", str(root / "notes"), "--yes")
    return cli


@pytest.mark.parametrize(
    ("args", "code", "refusal"),
    [
        (["skills", "show", "note"], 3, "there is no skill 'note'; did you mean notes?"),
        (["skills", "remove", "xyz"], 3, "there is no skill 'xyz'; there is: notes"),
        (["channels", "test", "pagr"], 3, "there is no channel 'pagr'; did you mean pager?"),
        (["channels", "test", "x"], 3, "there is no channel 'x'; there is: pager, post"),
        (["mail", "remove", "pots"], 3, "e-mail account 'pots'; did you mean post?"),
        (["contacts", "remove", "frends"], 3, "contacts 'frends'; did you mean friends?"),
        (["calendar", "remove", "wrk"], 3, "there is no calendar 'wrk'; did you mean work?"),
        (["mailbox", "remove", "dsk"], 3, "there is no mailbox 'dsk'; did you mean desk?"),
        (["mcp", "remove", "wik"], 3, "vigil.toml; did you mean wiki?"),
        (["mcp", "sign-in", "wik"], 3, "vigil.toml; did you mean wiki?"),
        (["a2a", "remove", "writr"], 3, "vigil.toml; did you mean writer?"),
        (["models", "remove", "locl"], 3, "vigil.toml; did you mean local?"),
        (["models", "use", "locl"], 1, "nor a model of Anthropic's; did you mean local?"),
        (["agents", "set", "vigl", "--authority", "act"], 3, "vigl; did you mean vigil?"),
        (["agents", "add", "x", "--channel", "pagr"], 3, "'pagr'; did you mean pager?"),
        (["up", "--without", "cortx"], 2, "did you mean cortex?"),
        (["eval", "--starter", "--only", "memry"], 2, "'memry'; did you mean memory?"),
        (["config", "get", "modle.main"], 3, "did you mean model.main?"),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, list) else "",
)
def test_the_one_that_is_near_is_named(cli: Cli, args: list[str], code: int, refusal: str) -> None:
    told = " ".join(cli(*args, code=code).stderr.replace("│", " ").split())
    assert refusal in told


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[budgt]", "[budgt]: no such section; did you mean budget?"),
        ("[mcp.wiki]\ncommand = ['x']", "`$.mcp.wiki.command`"),
        ("[calendars.work]\nuser = 'ann'", "field `kind` - at `$.calendars.work`"),
        ("[hooks.ci]\nusr = 'ann'", "at `$.hooks.ci`; did you mean user?"),
        (
            "[people.ann]\nquiet_hours = 'x'",
            "[people.ann]: quiet_hours 'x': expected HH:MM-HH:MM (no '-')",
        ),
        ("[gateway]\njson_depth_max = 'x'", "`$.gateway.json_depth_max`"),
        (
            "[[grants]]\nname = 'a'\ntool = 'x'\nuser = 'ann'\n[[grants]]\nnme = 'b'",
            "`$.grants[1]`; did you mean name?",
        ),
        ("[channels.tg]\nkind = 'telegram'\ntokn_file = 'x'", "; did you mean token_file?"),
        ("[channels.tg]\nkind = 'telegram'\ntimeot_s = 1", "`timeot_s`; did you mean timeout_s?"),
    ],
)
def test_what_is_wrong_in_the_file_names_its_section(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "vigil.toml").write_text(text)
    with pytest.raises(ConfigError) as refused:
        config.load({}, home=tmp_path)
    assert str(refused.value).endswith(problem)
