"""`vigil memory` and `vigil mcp`, as a person and an MCP host run them, against a whole Vigil."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support import warm
from tests.support.cli import Cli, ColdCli, eventually, running_vigil
from tests.support.printed import printed
from vigil import ApiError
from vigil import Client as HttpClient
from vigil.local import runfile

Mode = Literal["auto", "legacy"]
NOBODY = "0" * 32


@pytest.fixture(scope="module")
def vigil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with running_vigil(tmp_path_factory.mktemp("memory") / "home") as cli:
        yield cli


def person(cli: Cli, user: str) -> dict[str, Any]:
    """Return what makes a command be run by somebody else."""
    return {"VIGIL_TOKEN": cli.json("token", "create", "--user", user)["token"]}


def test_memories_from_saving_to_forgetting(vigil: Cli) -> None:
    """P-2: every command, for people and as JSON."""
    agent = ("--agent", "shop")
    teaching = vigil("memory", "list", *agent)
    assert teaching.stdout == ""
    assert "vigil memory save" in teaching.stderr
    assert "vigil memory save" in vigil("memory", "search", "anything", *agent).stderr
    saved = vigil.json("memory", "save", "The", "kettle", "is", "broken", "--type", "event",
                       "--at", "2026-03-04", "--thread", "kitchen", *agent)  # fmt: skip
    id_ = saved["id"]
    assert vigil("memory", "save", "Buy a toaster", "--source", "list", *agent).stdout.strip()
    found = vigil.json("memory", "search", "what", "is", "broken", *agent)
    assert found["memories"][0]["id"] == id_
    assert found["memories"][0]["source"] == "cli"
    shown = vigil("memory", "search", "kettle", *agent).stdout
    assert "SCORE" in shown
    assert "TEXT" in shown
    assert "The kettle is broken" in shown
    assert id_ in shown
    listed = vigil("memory", "list", *agent).stdout
    assert "2026-03-04 00:00" in listed
    assert [m["content"] for m in vigil.json("memory", "list", "--source", "list", *agent)[
        "memories"]] == ["Buy a toaster"]  # fmt: skip
    assert vigil.json("memory", "list", "--since", "1h", "--type", "event", *agent) == {
        "memories": []
    }
    vigil("me", "--timezone", "Asia/Tokyo")
    for since, is_there in (("2026-03-04T08:59", True), ("2026-03-04T09:01", False)):
        later = vigil.json("memory", "list", "--since", since, "--type", "event", *agent)
        assert (later["memories"] != []) == is_there, "nine in Tokyo is midnight by UTC"
    vigil("me", "--reset", "timezone")
    one = vigil("memory", "show", id_, *agent).stdout
    assert "The kettle is broken" in one
    assert "kitchen" in one
    vigil("memory", "save", "The shop is closed", "--expires", "7d", *agent)
    (closed,) = (
        m for m in vigil.json("memory", "list", *agent)["memories"] if "closed" in m["content"]
    )
    left = datetime.fromisoformat(closed["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7), "to come, not gone"
    vigil("memory", "forget", closed["id"], *agent)
    assert vigil.json("memory", "graph", *agent)["edges"] == []
    assert "associated" in vigil("memory", "graph", id_, *agent).stderr
    stats = vigil.json("memory", "stats", *agent)
    assert stats["memories"] == 2
    assert "2 memories" in vigil("memory", "stats", *agent).stdout
    assert "Reverted 1 memory" in vigil("memory", "undo", "list", "--yes", *agent).stderr
    assert "Forgot 1 memory" in vigil("memory", "forget", id_, *agent).stderr
    assert vigil.json("memory", "list", *agent) == {"memories": []}
    assert vigil.json("memory", "list", "--ended", *agent)["memories"][0]["ended"] == "undone"


def test_the_page_shows_what_a_search_shows(vigil: Cli) -> None:
    """docs/memory.md: the parts of a score, by the same names."""
    page = (Path(__file__).resolve().parents[2] / "docs/memory.md").read_text("utf-8")
    (head,) = (line for line in page.splitlines() if line.strip().startswith("SCORE "))
    agent = ("--agent", "boats")
    vigil("memory", "save", "The boat is called Marigold", "--thread", "harbour",
          "--at", "2026-11-20", *agent)  # fmt: skip
    for other in ("Plain text about tulips.", "my locker code is 4711"):
        vigil("memory", "save", other, *agent)
    titles = re.split(" {2,}", head.strip())
    asked = ("memory", "search", "what", "is", "the", "boat", "called", *agent)
    eventually(lambda: re.split(" {2,}", vigil(*asked).stdout.splitlines()[0]) == titles)


def test_a_memory_is_kept_in_order_by_hand(vigil: Cli) -> None:
    """M-6, M-9: maintain, rebuild; the same is found afterwards."""
    vigil("memory", "save", "The lighthouse is white", "--agent", "sea")
    done = vigil.json("memory", "maintain")
    assert set(done) == {"pruned", "merged", "observed", "message"}
    assert vigil("memory", "maintain", "--agent", "sea").stderr.strip()
    done = vigil.json("memory", "rebuild")
    assert done["replicas"] == 1
    assert done["stats"]["rebuild"] is None
    assert "Rebuilt" in vigil("memory", "rebuild", "--vectors").stderr
    assert "stats" in vigil("memory", "rebuild", "--no-wait").stderr
    eventually(lambda: vigil.json("memory", "stats")["rebuild"] is None)
    (found,) = vigil.json("memory", "search", "lighthouse", "--agent", "sea")["memories"]
    assert found["content"] == "The lighthouse is white"


def test_exit_codes_tell_what_went_wrong(vigil: Cli) -> None:
    """P-2: 2 wrong input, 3 not there, 4 not allowed."""
    vigil("memory", "show", NOBODY, code=3)
    vigil("memory", "forget", NOBODY, code=3)
    assert vigil.json("memory", "forget", NOBODY, code=3)["missing"] == [NOBODY]
    for nonsense in ("nonsense", "graph", "stats", "", "..", f"{NOBODY}?x"):
        vigil("memory", "show", nonsense, code=2)
        vigil("memory", "forget", nonsense, code=2)
    vigil("memory", "save", " ", code=2)
    vigil("memory", "save", "x", "--type", "thought", code=2)
    vigil("memory", "list", "--since", "monday", code=2)
    vigil("memory", "search", " ", code=2)
    vigil("memory", "search", "x", "--mode", "fast", code=2)
    bob = person(vigil, "bob")
    vigil("memory", "list", "--user", "me", code=4, **bob)
    vigil("memory", "rebuild", code=4, **bob)
    vigil("memory", "save", "of bob", **bob)
    (theirs,) = vigil.json("memory", "list", "--user", "bob")["memories"]
    assert theirs["content"] == "of bob"
    vigil("token", "create", "--user", "team", code=2)
    vigil("memory", "undo", "x", code=1, stdin="n\n")


def test_status_shows_the_memory_service(vigil: Cli) -> None:
    """P-2"""
    services = {one["service"]: one for one in vigil.json("status")["services"]}
    assert services["memory"]["ready"] is True
    shown = vigil("status").stdout
    assert f"memory {services['memory']['facts']['embedder']}" in shown


def test_without_vigil_it_says_so(tmp_path: Path) -> None:
    """P-2: code 3."""
    Cli(tmp_path)("memory", "list", code=3, VIGIL_URL="http://127.0.0.1:9")


def test_the_python_client_has_a_method_for_each_endpoint(vigil: Cli) -> None:
    """P-7: what it returns is the answer of the API."""
    token = (vigil.home / "token").read_text().strip()
    client = HttpClient(vigil.run_state.url, token)
    one = client.save_memory(
        "The tide turns at noon", type="event", thread="pier", importance=0.4, agent="py",
        occurred_at=datetime(2026, 5, 1, 12, tzinfo=UTC), idempotency_key="k",
    )  # fmt: skip
    again = client.save_memory("The tide turns at noon", type="event", idempotency_key="k",
                               agent="py")  # fmt: skip
    assert (again["id"], again["is_repeat"]) == (one["id"], True)
    two = client.save_memory(
        "The gulls are loud", links=[{"to_id": one["id"], "relation": "part_of"}], agent="py"
    )
    found = client.recall("when does the tide turn", types=["event"], agent="py", mode="text",
                          since=datetime(2026, 5, 1, tzinfo=UTC))  # fmt: skip
    assert [m["id"] for m in found["memories"]] == [one["id"]]
    with pytest.raises(ValueError, match="query"):
        client.recall(" ")
    assert {m["id"] for m in client.memories(agent="py", page_size=1)} == {one["id"], two["id"]}
    assert client.memory(one["id"], agent="py")["edges"][0]["relation"] == "part_of"
    client.associate(one["id"], two["id"], relation="contradicts", weight=0.2, agent="py")
    graph = client.memory_graph(one["id"], agent="py")
    assert {edge["weight"] for edge in graph["edges"]} == {0.5, 0.2}
    assert client.memory_stats(agent="py")["edges"] == 2
    assert client.forget(two["id"], agent="py") == {"forgotten": 1}
    with pytest.raises(ApiError) as refused:
        client.forget(two["id"], agent="py")
    assert refused.value.status == 404
    assert client.undo_memories("api", agent="py")["undone"] == [one["id"]]
    assert client.maintain(agent="py")["pruned"] == 0
    assert client.rebuild_memories(what="vectors")["replicas"] == 1


# ---------------------------------------------------------------- MCP


@contextlib.asynccontextmanager
async def hosting(cli: Cli, *args: str, mode: Mode = "auto", **environ: str) -> AsyncIterator[Any]:
    """An MCP host that starts `vigil mcp`, as the documentation shows."""
    command, *words = warm.relayed("vigil.cli", "mcp", *args)
    program = StdioServerParameters(command=command, args=words, env=cli.environ | environ)
    async with Client(stdio_client(program), mode=mode) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_mcp_host_uses_a_memory_over_stdio(vigil: Cli, mode: Mode) -> None:
    """P-5: every tool, through the HTTP API; two people at once see only their own."""
    agent = f"mcp-{mode}"
    bob = person(vigil, "bob")
    async with (
        hosting(vigil, "--agent", agent, mode=mode) as mine,
        hosting(vigil, "--agent", agent, mode=mode, **bob) as theirs,
    ):
        saved, other = await asyncio.gather(
            call(mine, "memory_save", content="My parrot is called Kiwi", type="fact"),
            call(theirs, "memory_save", content="Bob has a parrot, too"),
        )
        found, others = await asyncio.gather(
            call(mine, "memory_recall", query="parrot", types=["fact"]),
            call(theirs, "memory_recall", query="parrot"),
        )
        assert [m["content"] for m in found["memories"]] == ["My parrot is called Kiwi"]
        assert [m["content"] for m in others["memories"]] == ["Bob has a parrot, too"]
        assert found["memories"][0]["source"] == "mcp"
        assert [m["id"] for m in (await call(mine, "memory_list"))["memories"]] == [saved["id"]]
        detail = await call(mine, "memory_get", id=saved["id"])
        assert detail["memory"]["id"] == saved["id"]
        graph = await call(mine, "memory_graph", id=saved["id"], depth=2)
        assert len(graph["nodes"]) == 1
        stolen = await theirs.call_tool("memory_get", {"id": saved["id"]})
        assert stolen.is_error
        bad = await mine.call_tool("memory_save", {"content": "x", "colour": "red"})
        assert bad.is_error
        assert "colour" in bad.content[0].text
        assert await call(mine, "memory_forget", id=saved["id"]) == {"forgotten": 1}
        assert await call(theirs, "memory_forget", id=other["id"]) == {"forgotten": 1}


async def test_an_mcp_server_starts_without_vigil_and_tells_what_is_missing(
    tmp_path: Path,
) -> None:
    """P-5: a host starts its servers when it likes; the tools say what is wrong."""
    async with hosting(Cli(tmp_path), VIGIL_URL="http://127.0.0.1:9") as client:
        assert len((await client.list_tools()).tools) == 6
        result = await client.call_tool("memory_list", {})
        assert result.is_error
        assert "no Vigil at http://127.0.0.1:9" in result.content[0].text


def test_only_the_protocol_is_on_stdout(vigil: Cli) -> None:
    """P-5: each line of stdout is JSON-RPC, whatever comes in; it ends with stdin."""
    lines = [
        "nonsense",
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}}}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                    "params": {"name": "memory_get", "arguments": {"id": NOBODY}}}),
    ]  # fmt: skip
    process = ColdCli(vigil.home).start("mcp")
    assert process.stdin is not None
    assert process.stdout is not None
    for line in lines:
        process.stdin.write(f"{line}\n")
    process.stdin.flush()
    answers: list[dict[str, Any]] = []
    while not any(answer.get("id") == 2 for answer in answers):
        answers.append(json.loads(process.stdout.readline()))
    rest, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    assert "there is no memory" in answers[-1]["result"]["content"][0]["text"]
    assert "Traceback" not in errors
    assert runfile.running(vigil.run_file) is not None


def test_documents_become_memories_and_are_taken_in_anew(vigil: Cli, tmp_path: Path) -> None:
    """Issue 32: what files say is found by what they are about, from outside unless vouched for;
    the same again saves nothing, a change takes the place of all, a source is forgotten whole."""
    agent = ("--agent", "papers")
    house, page = tmp_path / "house.md", tmp_path / "more" / "garden.html"
    page.parent.mkdir()
    house.write_text("# Boiler\n\nThe boiler is serviced each May.\n\n# Roof\n\nIt leaks.\n")
    page.write_text("<h1>Garden</h1><script>no</script><p>The pear tree is from 1950.</p>")
    (tmp_path / "photo.png").write_bytes(b"no text")
    paper = tmp_path / "paper.pdf"
    paper.write_bytes(printed("", "The roof is of slate."))
    (tmp_path / ".hidden.md").write_text("secret")

    def taken(*options: str, code: int = 0) -> dict[str, tuple[str, int]]:
        found = vigil.json("memory", "import", str(tmp_path), *options, *agent, code=code)["files"]
        return {Path(one["file"]).name: (one["outcome"], one["saved"]) for one in found}

    def known(source: Path) -> list[dict[str, Any]]:
        name = f"file:{source.resolve()}"
        found: list[dict[str, Any]] = vigil.json("memory", "list", "--source", name, *agent)[
            "memories"
        ]
        return found

    assert taken() == {
        "house.md": ("new", 2), "garden.html": ("new", 1), "paper.pdf": ("new", 1),
    }  # fmt: skip
    assert [one["content"] for one in known(paper)] == [
        "paper.pdf \u203a page 2\nThe roof is of slate."
    ]
    told = vigil("memory", "import", str(paper), *agent).stdout
    assert told.endswith("same, 0 memories saved; 1 of 2 pages holds no text: 1\n")
    paper.unlink()
    removed = vigil.json("memory", "import", str(tmp_path), *agent)["forgotten"]
    assert removed == [{"source": f"file:{paper.resolve()}", "undone": 1}]
    assert known(paper) == []
    best = vigil.json("memory", "search", "when is the boiler serviced", *agent)["memories"][0]
    assert best["content"] == "house.md \u203a Boiler\nThe boiler is serviced each May."
    assert best["is_tainted"]
    assert [one["content"] for one in known(page)] == [
        "garden.html \u203a Garden\nThe pear tree is from 1950."
    ]
    assert taken() == {"house.md": ("same", 0), "garden.html": ("same", 0)}
    house.write_text("# Boiler\n\nThe boiler is serviced each June.\n")
    assert taken() == {"house.md": ("changed", 1), "garden.html": ("same", 0)}
    assert ["June" in one["content"] for one in known(house)] == [True]
    assert taken("--trusted") == {"house.md": ("changed", 1), "garden.html": ("changed", 1)}
    assert not any(one.get("is_tainted") for one in known(house))
    house.write_bytes(b"\xff\xfe")
    assert taken("--trusted", code=3) == {"house.md": ("left out", 0), "garden.html": ("same", 0)}
    said = vigil("memory", "import", str(house), *agent, code=3)
    assert f"{house}: is no text in UTF-8" in said.stdout + said.stderr, "named once"
    assert len(known(house)) == 1, "what can't be read takes nothing away"
    vigil("memory", "undo", f"file:{page.resolve()}", "--yes", *agent)
    assert known(page) == []
    assert taken("--trusted", code=3)["garden.html"] == ("new", 1), "it can come back"


def test_a_folder_that_is_out_of_reach_takes_nothing_with_it(vigil: Cli, tmp_path: Path) -> None:
    """Issue 32: an empty folder where files were may be a disk that isn't mounted; what is surely
    removed is forgotten, and told. A path of any length and spelling is a source, and the same
    text twice is of both files."""
    agent = ("--agent", "shelf")
    disk = tmp_path / "disk"
    deep = disk / ("deep " * 30) / ("deeper " * 20) / "\udcff.md"
    same = tmp_path / "a" / "README.md", tmp_path / "b" / "README.md"
    for one in (deep, *same):
        one.parent.mkdir(parents=True)
        one.write_text("The kettle is red.")

    def run(*options: str, path: Path = tmp_path, code: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = vigil.json(
            "memory", "import", str(path), *options, *agent, code=code
        )
        return found

    def outcomes(found: dict[str, Any]) -> list[str]:
        return [one["outcome"] for one in found["files"]]

    assert outcomes(run()) == ["new"] * 3
    assert outcomes(run()) == ["same"] * 3
    same[0].unlink()
    away = tmp_path / "away"
    deep.parents[1].rename(away)
    found = run(code=3)
    assert [one["source"] for one in found["forgotten"]] == []
    assert [(one["folder"], one["files"]) for one in found["kept"]] == [
        (str(same[0].parent), 1), (str(disk), 1),
    ]  # fmt: skip
    same[0].parent.rmdir()
    told = vigil("memory", "import", str(tmp_path), *agent, code=3)
    assert f"{same[0]}: removed, 1 memory forgotten" in told.stdout
    assert f"{disk} lacks 1 that were there" in told.stderr
    assert "kettle" in str(vigil.json("memory", "search", "kettle", *agent)["memories"])
    away.rename(deep.parents[1])
    assert outcomes(run()) == ["same"] * 2
    same[1].unlink()
    there = vigil("memory", "import", str(same[1]), *agent, code=2)
    assert "isn't there; --gone forgets" in there.stderr
    assert [one["undone"] for one in run("--gone", path=same[1])["forgotten"]] == [1]
    deep.unlink()
    assert [one["undone"] for one in run("--gone")["forgotten"]] == [1]
    assert vigil.json("memory", "list", *agent)["memories"] == []
