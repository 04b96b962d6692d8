"""Whatever is done to a call,
a grant covers none that a simple oracle doesn't allow (LOOPS L-8)."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import httpx2
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import up_to
from vigil.contracts import Address, AnyConstraint, Argv, Equal, Exact, Folder, Grant
from vigil.errors import InvalidInput
from vigil.grants import command
from vigil.grants.check import check
from vigil.grants.rule import Standing, Wanted, match
from vigil.subjects import SessionKey

NOW: Final = datetime(2026, 11, 23, 9, tzinfo=UTC)
TRICKS: Final = (
    ";", "&", "&&", "|", "||", ">", ">>", "<", "<<<", "\n", "\r", "\t", "\0", "\\", "$", "$(id)",
    "`id`", "${x}", "*", "?", "[a]", "{a,b}", "~", "#", "!", "!!", "(", ")", "'", '"', "=", "%",
    "^",
    " ", "  ", "\u00a0", "\u2003", "\u202e", "\u200b", "\uff1b", "\uff0e", "\u2215", "\u0430",
    "%2f",
    "%2e", "%2e%2e", "%5c", "%00", "%25", "..", "/../", "/./", "//", "/", ".", "@", "@evil.test",
    ":",
    ":443", ":8443", "evil.test", "?x=1", "#x", "a", "-x", "--", "-", "+x", "x", "1",
)  # fmt: skip
WORDS: Final = ("df", "git", "log", "-h", "-n1", "status", "a b", "x=y", "/tmp/f", "it's", "%s")


def mutated(base: str) -> st.SearchStrategy[str]:
    """A text with up to three tricks put into it, or over a part of it."""
    edit = st.tuples(
        st.integers(0, 60), st.integers(0, 4), st.sampled_from(TRICKS) | st.text(max_size=3)
    )

    def apply(edits: list[tuple[int, int, str]]) -> str:
        text = base
        for at, over, trick in edits:
            place = at % (len(text) + 1)
            text = text[:place] + trick + text[place + over :]
        return text

    return st.lists(edit, max_size=3).map(apply)


def covers(tool: str, constraint: AnyConstraint, call: dict[str, Any], **changes: Any) -> bool:
    grant = Grant(id="a" * 32, name="g1", owner="ann", agent="vigil", tool=tool,
                  constraints=(constraint,), made_at=NOW)  # fmt: skip
    wanted = Wanted(
        key=SessionKey("ann", "vigil", "t1"), tool=tool, risk=changes.get("risk", "external"),
        input=call, is_outside=False, now=NOW,
    )  # fmt: skip
    return match([Standing(grant=check(grant), revision=1)], wanted).standing is not None


# ---------------------------------------------------------------- commands


@st.composite
def commands(draw: st.DrawFn) -> tuple[Argv, str]:
    argv = ("df", *draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)))
    more = draw(st.sampled_from(("nothing", "operands", "anything")))
    named = argv[: draw(st.integers(2, len(argv)))]
    quote = draw(st.sampled_from(('"{}"', "'{}'", "{}")))
    line = " ".join((argv[0], *(quote.format(word) for word in argv[1:])))
    return Argv(argv=named, more=more), draw(mutated(line))


def words_by_bash(line: str, folder: Path) -> list[str] | None:
    """What bash starts for a line, told by the program itself; None: it did anything else."""
    done = subprocess.run(
        ["/bin/bash", "-c", line], capture_output=True, check=False, cwd=folder, timeout=20,
        env={"PATH": str(folder / "bin"), "HOME": "/nowhere", "x": "v"}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode or done.stderr:
        return None
    return done.stdout.decode().split("\0")[:-1]


@given(commands())
@up_to(300)
def test_a_covered_command_is_to_bash_what_was_granted(
    tmp_path_factory: Any, made: tuple[Argv, str]
) -> None:
    rule, line = made
    if not covers("shell", rule, {"command": line}):
        return
    folder = tmp_path_factory.getbasetemp() / "words"
    program = folder / "bin" / "df"
    if not program.exists():
        program.parent.mkdir(parents=True)
        program.write_text('#!/bin/bash\nprintf "%s\\0" df "$@"\n')
        program.chmod(0o755)
    before = sorted(folder.rglob("*"))
    found = words_by_bash(line, folder)
    assert found is not None, line
    assert tuple(found[: len(rule.argv)]) == rule.argv
    assert found == list(command.parse(line))
    rest = found[len(rule.argv) :]
    assert not rest or rule.more != "nothing"
    assert rule.more == "anything" or not any(word[:1] in ("-", "+", "@", "") for word in rest)
    assert sorted(folder.rglob("*")) == before


@given(st.text(max_size=40) | mutated("df -h /home"))
@up_to(1000)
def test_a_line_that_can_be_read_has_nothing_of_a_shell(line: str) -> None:
    try:
        words = command.parse(line)
    except InvalidInput:
        return
    assert line.isascii()
    assert line.isprintable()
    if "'" not in line and '"' not in line:
        assert not set(line) & set(";&|<>()$`\\*?[]{}~#!^")
        assert list(words) == line.split()


# ---------------------------------------------------------------- URLs


@given(st.sampled_from(("/", "/v1", "/v1/items/")), mutated("https://api.example.org/v1/items/7"))
@up_to(2000)
def test_a_covered_url_leads_where_it_was_granted(path: str, url: str) -> None:
    rule = Address(host="api.example.org", port=443, path=path)
    if not covers("http_get", rule, {"url": url}):
        return
    asked, parts = httpx2.URL(url), urlsplit(url)
    for host in (asked.host, parts.hostname):
        assert (host or "").removesuffix(".").lower() == "api.example.org"
    assert asked.scheme == parts.scheme == "https"
    assert asked.port in (None, 443)
    assert not asked.userinfo
    once = unquote(asked.path)
    assert unquote(once) == once or "%" not in once
    assert str(PurePosixPath(once)) == once.rstrip("/") or once == "/"
    wanted, found = path.strip("/").split("/"), once.strip("/").split("/")
    assert path == "/" or found[: len(wanted)] == wanted
    assert ".." not in found


# ---------------------------------------------------------------- paths, values, exact calls


@given(mutated("reports/2026/may.md"))
@up_to(2000)
def test_a_covered_path_is_in_its_folder(path: str) -> None:
    if not covers("write_file", Folder(folder="reports/2026"), {"path": path, "content": "x"}):
        return
    for read in (path, unquote(path)):
        assert PurePosixPath("/w").joinpath(read).is_relative_to("/w/reports/2026")
        assert ".." not in read.split("/")
    assert path.isprintable()
    assert "\\" not in path


json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


def is_same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return repr(one) == repr(other)


@given(json, json)
@up_to(1000)
def test_a_covered_value_is_the_granted_one(granted: Any, value: Any) -> None:
    equal, call = Equal(field="x", value=granted), {"x": value, "y": 1}
    assert covers("tickets__close", equal, call) == is_same(granted, value)
    exact = Exact(input={"x": granted, "y": 1})
    assert covers("tickets__close", exact, call) == is_same(granted, value)
    assert covers("tickets__close", exact, call, risk="destructive") == is_same(granted, value)
    assert not covers("tickets__close", equal, call, risk="destructive")


# ---------------------------------------------------------------- many


@given(st.integers(0, 199), mutated("p7 -h"), st.booleans())
@up_to(300)
def test_of_two_hundred_the_one_that_covers_is_found(
    number: int, line: str, is_outside: bool
) -> None:
    grants = [
        Grant(id=f"{n:032x}", name=f"g{n}", owner="ann", agent="vigil", tool="shell", made_at=NOW,
              constraints=(Argv(argv=(f"p{n}", "-h")),), holds_for_outside=n % 2 == 0)
        for n in range(200)
    ]  # fmt: skip
    for asked in (f"p{number} -h", line):
        wanted = Wanted(key=SessionKey("ann", "vigil", "t1"), tool="shell", risk="external",
                        input={"command": asked}, is_outside=is_outside, now=NOW)  # fmt: skip
        found = match([Standing(grant=one, revision=1) for one in grants], wanted).standing
        words = asked.replace("'", "").replace('"', "").split()
        allowed = [n for n in range(200) if words == [f"p{n}", "-h"] and not (is_outside and n % 2)]
        if found is not None:
            assert [f"g{n}" for n in allowed] == [found.grant.name]
        elif asked == f"p{number} -h":
            assert not allowed
