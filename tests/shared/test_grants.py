"""What a standing grant covers, and what none may be (LOOPS L-8, L-10)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from vigil.contracts import Address, AnyConstraint, Argv, Equal, Exact, Folder, Grant
from vigil.contracts.board.grant import Empty
from vigil.errors import InvalidInput
from vigil.grants import command
from vigil.grants.check import check
from vigil.grants.proposal import constraints_of
from vigil.grants.rule import Standing, Wanted, is_for, match, obstacle
from vigil.subjects import SessionKey
from vigil.zones.wall import END

NOW: Final = datetime(2026, 11, 23, 9, tzinfo=UTC)
KEY: Final = SessionKey("ann", "vigil", "t1")
DF: Final = Argv(argv=("df", "-h"))


def grant(tool: str = "shell", *constraints: AnyConstraint, **changes: Any) -> Grant:
    made = Grant(
        id="a" * 32,
        name="g1",
        owner="ann",
        agent="vigil",
        tool=tool,
        constraints=constraints or (DF,),
        made_at=NOW,
    )
    return replace(made, **changes)


def covers(granted: Grant, given: dict[str, Any], *, uses: int = 0, **changes: Any) -> bool:
    wanted = Wanted(
        key=KEY, tool=granted.tool, risk="external", input=given, is_outside=False, now=NOW
    )
    standing = Standing(grant=check(granted), revision=1, uses=uses)
    return obstacle(standing, replace(wanted, **changes)) is None


def runs(rule: Argv, line: Any) -> bool:
    return covers(grant("shell", rule), {"command": line})


# ---------------------------------------------------------------- commands


@pytest.mark.parametrize("line", ["df -h", "  df   -h ", "'df' \"-h\"", "d'f' -h"])
def test_a_command_is_what_its_words_are(line: str) -> None:
    assert runs(DF, line)


@pytest.mark.parametrize(
    "line",
    [
        "df -h; id", "df -h & id", "df -h && id", "df -h || id", "df -h | sh", "df -h > f",
        "df -h < f", "df -h 2>&1", "df -h\nid", "df -h\rid", "df -h\tx", "df -h $(id)",
        "df -h `id`",
        "df -h $HOME", "df -h ${HOME}", "df -h *", "df -h ?", "df -h [a]", "df -h {a,b}", "df -h ~",
        "df -h #", "df -h !!", "df -h \\\nid", "df \\-h", "X=1 df -h", "PATH=. df -h", "df -h (x)",
        "df -h 'x", 'df -h "x', 'df -h "$(id)"', 'df -h "`id`"', "df -h\x00", "df -h\u00a0x",
        "df\u2003-h", "df \u2212h", "\uff44f -h", "df -h \u202e", "df -h $'\\n'", "df -h <(id)",
        "df -h x y", "df", "", " ", "./df -h", "df -H", "DF -h", ["df", "-h"], None, 1,
    ],
)  # fmt: skip
def test_nothing_of_a_shells_language_widens_a_command(line: Any) -> None:
    assert not runs(DF, line)


def test_what_may_follow_is_said() -> None:
    operands = replace(DF, more="operands")
    assert runs(operands, "df -h /home '/my disk'")
    assert not any(runs(operands, f"df -h {more}") for more in ("-a", "--all", "+x", "@f", "''"))
    assert runs(replace(DF, more="anything"), "df -h --all /home")


@pytest.mark.parametrize(
    "argv",
    [
        ("sh", "-c", "df"), ("bash", "-c", "df"), ("/bin/bash", "-lc", "df"), ("bash",),
        ("sh", "-s"),
        ("python3", "-c", "1"), ("python3.11", "-ic", "1"), ("python",), ("python", "-m"),
        ("perl", "-e", "1"), ("node", "--eval", "1"), ("ruby", "-e1"), ("php", "-r", "1"),
        ("env", "df"), ("/usr/bin/env", "df"), ("xargs", "df"), ("sudo", "df"), ("doas", "df"),
        ("nohup", "df"), ("timeout", "9", "df"), ("time", "df"), ("busybox", "sh"), ("eval", "df"),
        ("exec", "df"), ("command", "df"), (".", "x"), ("source", "x"), ("ssh", "host"),
        ("find", ".", "-exec", "df", "+"), ("find", ".", "-ok", "df"), ("tar", "--to-command=sh"),
        ("setsid", "df"), ("nice", "df"), ("ld-linux-x86-64.so.2", "/bin/sh"), ("A=1", "df"),
        ("df;id",), ("",), (), ("df\n", "-h"), ("d\u0192", "-h"), ("df", "\u202e"), ("-c",),
        ("~/x",),
    ],
)  # fmt: skip
def test_what_runs_anything_is_not_granted(argv: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput) as refused:
        check(grant("shell", Argv(argv=argv)))
    assert refused.value.field == "argv"


@pytest.mark.parametrize(
    "argv",
    [
        *((name, "x") for name in ("find", "awk", "sed", "tar", "rsync", "vim", "make", "curl")),
        ("linux64", "x"), ("x86_64", "x"), ("ssh-agent", "x"), ("choom", "x"), ("gosu", "x"),
        ("tini", "x"), ("go", "run"), ("rake", "x"), ("just", "x"), ("systemd-inhibit", "x"),
        ("ip", "netns", "exec", "x"), ("a-launcher-of-tomorrow", "x"), ("deno", "run"),
        ("bun", "x"), ("node", "inspect"), ("python3", "-m", "http.server"), ("git", "log"),
        ("date", "x"), ("uniq", "x"), ("tee", "x"), ("sort", "-o"), ("./df", "x"),
        ("/tmp/df", "x"), ("DF", "x"), ("df2", "x"), ("bin/python3", "check.py"),
    ],
)  # fmt: skip
def test_what_may_do_anything_with_more_is_granted_word_for_word(argv: tuple[str, ...]) -> None:
    """L-8: no list of launchers is whole, so what isn't known to read and print has no more."""
    check(grant("shell", Argv(argv=argv)))
    for more in ("operands", "anything"):
        rule = Argv(argv=argv, more=more)
        with pytest.raises(InvalidInput, match="more: must be 'nothing'"):
            check(grant("shell", rule))
        assert command.obstacle(rule, " ".join((*argv, "y"))), "nor by a grant that was made before"
        assert command.obstacle(rule, " ".join(argv)) is None


def test_what_reads_and_prints_may_have_more() -> None:
    for argv in (("df", "-h"), ("/usr/bin/cat",), ("sort",), ("sh", "./check.sh")):
        rule = Argv(argv=argv, more="operands")
        check(grant("shell", rule))
        assert command.obstacle(rule, " ".join((*argv, "notes.md"))) is None
    with pytest.raises(InvalidInput, match="more: must be 'nothing'"):
        check(grant("shell", Argv(argv=("sort", "notes.md"), more="anything")))


def test_an_interpreter_is_granted_with_the_file_that_it_runs() -> None:
    rule = Argv(argv=("python3", "check.py"), more="anything")
    assert runs(rule, "python3 check.py --fast")
    assert not runs(rule, "python3 -c 1 check.py")
    check(grant("shell", Argv(argv=("python3", "-m", "pytest"))))


# ---------------------------------------------------------------- URLs

API: Final = Address(host="api.example.org", port=443, path="/v1")


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.org/v1", "https://API.Example.org./v1/",
        "https://api.example.org:443/v1",
        "https://api.example.org/v1/items?page=2", "https://api.example.org/v1/a%20b",
    ],
)  # fmt: skip
def test_a_url_is_of_a_host_and_below_a_path(url: str) -> None:
    assert covers(grant("http_get", API), {"url": url})


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.org/v1", "https://api.example.org:444/v1", "https://example.org/v1",
        "https://api.example.org.evil.test/v1", "https://evil.test/https://api.example.org/v1",
        "https://api.example.org@evil.test/v1", "https://a:b@api.example.org/v1",
        "https://evil.test\\@api.example.org/v1", "https://api.example.org/v10",
        "https://api.example.org/", "https://api.example.org/v1/../admin",
        "https://api.example.org/v1/%2e%2e/admin", "https://api.example.org/v1/..%2fadmin",
        "https://api.example.org/v1/%252e%252e/x", "https://api.example.org/v1/..%5cadmin",
        "https://api.example.org/v1/..;/admin", "https://api.example.org/v1/./x",
        "https://api.example.org/v1//x", "https://api.example.org//v1",
        "https://api.example.org/V1",
        "https://api.example.org/v1#x", "https://api.example.org/v1/%",
        "https://api.example.org/v1/%0a",
        "https://api.example.org/v1/\u2025/x", "https://\u0430pi.example.org/v1",
        "ftp://api.example.org/v1",
        "https://api.example.org/v1 x", "https://api.example.org/v1\n",
        " https://api.example.org/v1",
        "https:/api.example.org/v1", "//api.example.org/v1", "https://api\uff0eexample.org/v1",
        "", 7, None,
        "https://api.example.org/v1/x/..",
    ],
)  # fmt: skip
def test_nothing_leads_a_url_elsewhere(url: Any) -> None:
    assert not covers(grant("http_get", API), {"url": url})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"host": "*.example.org"}, "host"), ({"host": "*"}, "host"),
        ({"host": "api.example.?"}, "host"),
        ({"host": "API.example.org"}, "host"), ({"host": "a@b"}, "host"), ({"host": "a/b"}, "host"),
        ({"host": "0x7f.1"}, "host"), ({"host": ""}, "host"), ({"port": 0}, "port"),
        ({"port": 65536}, "port"), ({"path": "v1"}, "path"), ({"path": "/v1/.."}, "path"),
        ({"path": "/*"}, "path"), ({"path": "/%2e"}, "path"), ({"path": "/" + "a" * 600}, "path"),
        ({"host": "b\u00fccher.example"}, "host"),
    ],
)  # fmt: skip
def test_an_address_names_one_host(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check(grant("http_get", replace(API, **changes)))
    assert refused.value.field == field


# ---------------------------------------------------------------- paths, values, exact calls


@pytest.mark.parametrize(
    "path",
    [
        "reports", "other/x", "reports2/x", "../reports/x", "reports/../x", "reports/./x",
        "reports//x",
        "/reports/x", "reports/x\0", "reports\\x", "reports/%2e%2e/x", "Reports/x", "./reports/x",
        "",
        "reports/", "~/reports/x", "reports/\u202ex", None, 1,
    ],
)  # fmt: skip
def test_a_path_stays_in_its_folder(path: Any) -> None:
    granted = grant("write_file", Folder(folder="reports"))
    assert covers(granted, {"path": "reports/2026/may.md", "content": "anything"})
    assert not covers(granted, {"path": path, "content": "x"})


@pytest.mark.parametrize("folder", ["", ".", "/", "..", "a/../b", "a//b", "a\0"])
def test_a_folder_is_one(folder: str) -> None:
    with pytest.raises(InvalidInput, match="folder"):
        check(grant("write_file", Folder(folder=folder)))


def test_values_are_equal_as_json() -> None:
    granted = grant("tickets__close", Equal(field="id", value=1), Equal(field="note", value=None))
    assert covers(granted, {"id": 1, "note": None, "more": "x"})
    for given in ({"id": True, "note": None}, {"id": 1.0, "note": None}, {"id": 1}, {"id": "1"}):
        assert not covers(granted, given)


def test_nobody_else_is_let_in() -> None:
    """FLOW F-8: a calendar's tool that is granted without a word on participants takes any."""
    granted = grant("cal__create", Equal(field="calendar", value="mine"), Empty(field="attendees"))
    for nobody in ({}, {"attendees": None}, {"attendees": []}, {"attendees": ""}):
        assert covers(granted, {"calendar": "mine"} | nobody)
    for somebody in (["mark@attacker.example"], "mark", [""], 0, False, {"a": 1}):
        assert not covers(granted, {"calendar": "mine", "attendees": somebody})


def test_what_cant_be_undone_needs_the_exact_call() -> None:
    """L-10."""
    given = {"id": 7}
    wide, exact = grant("tickets__drop", Equal(field="id", value=7)), Exact(input=given)
    assert covers(wide, given)
    assert not covers(wide, given, risk="destructive")
    assert covers(grant("tickets__drop", exact), given, risk="destructive")
    assert not covers(grant("tickets__drop", exact), given | {"force": True}, risk="destructive")


# ---------------------------------------------------------------- whose, when, how often


def test_a_grant_holds_for_its_owner_agent_and_conversation() -> None:
    given = {"command": "df -h"}
    assert not covers(grant(), given, key=SessionKey("bob", "vigil", "t1"))
    assert not covers(grant(), given, key=SessionKey("ann", "other", "t1"))
    assert covers(grant(), given, key=SessionKey("ann", "vigil", "t2"))
    here = grant(session_key="ann:vigil:t1")
    assert covers(here, given)
    assert not covers(here, given, key=SessionKey("ann", "vigil", "t2"))


@pytest.mark.parametrize(("scope", "other"), [("row", "goal"), ("goal", "row")])
def test_one_for_a_row_or_a_goal_holds_for_no_conversation_and_no_other(
    scope: str, other: str
) -> None:
    given, here = {"command": "df -h"}, grant(**{scope: "c" * 32})
    assert covers(here, given, **{scope: "c" * 32})
    assert not covers(here, given)
    assert not covers(here, given, **{scope: "d" * 32})
    assert not covers(here, given, **{other: "c" * 32})
    assert covers(grant(), given, **{scope: "c" * 32})


def test_a_grant_ends() -> None:
    given = {"command": "df -h"}
    later = NOW + timedelta(days=1)
    assert covers(grant(expires_at=later, uses_max=2), given, uses=1)
    assert not covers(grant(expires_at=later), given, now=later)
    assert not covers(grant(uses_max=2), given, uses=2)
    assert not covers(grant(revoked_at=NOW), given)


def test_outside_content_needs_the_word() -> None:
    given = {"command": "df -h"}
    assert not covers(grant(), given, is_outside=True)
    assert covers(grant(holds_for_outside=True), given, is_outside=True)


def test_the_first_that_covers_a_call_is_found_and_others_tell_why_not() -> None:
    others = [grant(name=f"g{n}", constraints=(Argv(argv=(f"p{n}",)),)) for n in range(199)]
    standing = [
        Standing(grant=one, revision=n) for n, one in enumerate([*others, grant(name="df")])
    ]
    wanted = Wanted(key=KEY, tool="shell", risk="external", input={"command": "df -h"},
                    is_outside=False, now=NOW)  # fmt: skip
    found = match(standing, wanted)
    assert found.standing is not None
    assert found.standing.grant.name == "df"
    nothing = match(standing[:-1], wanted)
    assert nothing.standing is None
    assert nothing.reasons["g0"] == "it's another command"


def test_a_servers_tools_are_told_from_anothers() -> None:
    assert is_for("files__*", "files__read")
    assert not any(
        is_for("files__*", tool) for tool in ("files", "files_", "files2__read", "shell")
    )


# ---------------------------------------------------------------- what may be granted


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"tool": "*"}, "tool"), ({"tool": ""}, "tool"), ({"tool": "__*"}, "tool"),
        ({"tool": "s*"}, "tool"), ({"tool": "she ll"}, "tool"),
        ({"constraints": ()}, "constraints"),
        ({"tool": "http_get"}, "constraints"),
        ({"tool": "http_get", "constraints": ()}, "constraints"),
        ({"tool": "files__write"}, "constraints"), ({"constraints": (DF, DF)}, "constraints"),
        ({"constraints": (DF, Exact(input={}))}, "constraints"), ({"name": "A b"}, "name"),
        ({"constraints": tuple(Equal(field=str(n), value=n) for n in range(17))}, "constraints"),
        ({"constraints": (DF, Equal(field="x", value="a" * 1_000_000))}, "constraints"),
        ({"why": "a" * 501}, "why"), ({"why": "a\nb"}, "why"), ({"uses_max": -1}, "uses_max"),
        ({"expires_at": NOW}, "expires_at"), ({"expires_at": END}, "expires_at"),
        ({"session_key": "bob:vigil:t"}, "session_key"),
        ({"row": "c" * 31}, "row"), ({"row": "c" * 32, "session_key": "ann:vigil:t1"}, "row"),
        ({"goal": "c" * 31}, "goal"), ({"goal": "c" * 32, "row": "c" * 32}, "goal"),
        ({"goal": "c" * 32, "session_key": "ann:vigil:t1"}, "goal"),
        ({"constraints": (DF, Equal(field="", value=1))}, "field"), ({"owner": "a.b"}, "owner"),
        ({"constraints": (Argv(argv=("df",), more="anything"),)}, "argv"),
    ],
)  # fmt: skip
def test_a_grant_for_everything_is_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check(grant(**changes))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("tool", "given", "kind"),
    [
        ("shell", {"command": "df -h"}, Argv), ("shell", {"command": "df | sh"}, Exact),
        ("shell", {"command": "bash -c 'df'"}, Exact),
        ("shell", {"command": "df", "timeout_s": 5}, Argv),
        ("http_get", {"url": "https://api.example.org/v1?x=1"}, Address),
        ("http_get", {"url": "https://api.example.org/v1/../x"}, Exact),
        ("write_file", {"path": "reports/a.md", "content": "x"}, Folder),
        ("write_file", {"path": "a.md", "content": "x"}, Exact),
        ("tickets__close", {"id": 7}, Equal),
        ("tickets__list", {}, Exact),
    ],
)  # fmt: skip
def test_a_proposal_covers_its_call_and_may_be_granted(
    tool: str, given: dict[str, Any], kind: type[AnyConstraint]
) -> None:
    (proposed,) = constraints_of(tool, "external", given)
    assert isinstance(proposed, kind)
    assert covers(grant(tool, proposed), given)
    (exact,) = constraints_of(tool, "destructive", given)
    assert covers(grant(tool, exact), given, risk="destructive")


def test_a_command_of_many_words_is_none_that_a_grant_covers() -> None:
    with pytest.raises(InvalidInput, match="a grant covers 64"):
        command.parse(" ".join(["x"] * 65))
