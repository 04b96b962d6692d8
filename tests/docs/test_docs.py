"""The documentation promises what the code does: every name in the one stands in the other.

Read from the source, so that a new note, setting or crash point without a line in docs/ fails
here. What the sentences say can't be checked; the examples are.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.gateway.app import MESSAGES_PATH, endpoints
from tests.support.stack import Stack, running_stack
from vigil import contracts, crash, topology
from vigil.cli import exits
from vigil.contracts import UserMessage, UserMessagePayload, encode, golden
from vigil.fields import variables
from vigil.processes.process import start
from vigil.subjects import SessionKey

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
SOURCES = [ROOT / "shared", ROOT / "services"]


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def source(*folders: Path) -> str:
    files = [file for folder in folders for file in sorted(folder.rglob("*.py"))]
    return "\n".join(file.read_text("utf-8") for file in files)


def section(name: str, heading: str) -> str:
    """Return one part of a page, up to the next heading of its level."""
    return page(name).split(f"\n## {heading}\n")[1].split("\n## ")[0]


def listed_names(text: str) -> set[str]:
    """Return every name in backquotes that begins a line of the lists and tables of `text`."""
    heads = re.findall(r"^\* (.*?):\s|^\| (.*?) \|", text, re.MULTILINE)
    return {name for head in map("".join, heads) for name in re.findall(r"`([^`]+)`", head)}


# ---------------------------------------------------------------- settings, logs, exit codes


def test_every_variable_is_listed() -> None:
    known = {*variables._SEED_VARIABLES, *variables.WITHOUT_MEANING, *variables._NOT_SETTINGS}
    known |= {"OPENAI_API_KEY", "OPENAI_API_KEY_FILE"}
    known |= {"ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY_FILE", "ANTHROPIC_BASE_URL"}
    assert known <= listed_names(section("operations.md", "Settings"))


def test_every_exit_code_is_listed() -> None:
    codes = {v for k, v in vars(exits).items() if k.isupper() and isinstance(v, int)}
    listed = re.findall(r"^\| (\d+) \|", section("operations.md", "On one machine"), re.MULTILINE)
    assert codes | {crash.EXIT_CODE} == set(map(int, listed))


# ---------------------------------------------------------------- the bus


def test_every_stream_and_bucket_is_listed() -> None:
    text = section("bus.md", "Streams and buckets")
    names = {one.name for one in (*topology.STREAMS, *topology.BUCKETS)}
    assert set(re.findall(r"^\| ([A-Z]+) \|", text, re.MULTILINE)) == names


def test_every_header_of_a_turn_is_listed() -> None:
    headers = {v for k, v in vars(contracts).items() if k.endswith("_HEADER")}
    assert headers <= listed_names(section("bus.md", "Headers"))


def test_every_record_has_its_example() -> None:
    """S-14: the files that the tests decode for good, one or more for each record."""
    linked = re.findall(r"\]\(\.\./shared/vigil/contracts/golden/([\w.]+)\.json\)", page("bus.md"))
    assert sorted(linked) == sorted(golden.records())


@pytest.fixture(params=[1, 2])
async def parted(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stack]:
    """A broker with so many logs of sessions; an installation begins with two."""
    nats = {"partitions": request.param}
    async with running_stack(tmp_path / "home", services=(), nats=nats) as stack:
        yield stack


async def test_a_plain_client_follows_a_session_as_shown(parted: Stack) -> None:
    """P-7, ADR 22: the program in bus.md, run as it stands there."""
    key = SessionKey("me", "vigil", "t1")
    event = UserMessage(
        id="e1",
        session_key=str(key),
        created_at=datetime(2026, 1, 5, tzinfo=UTC),
        payload=UserMessagePayload(text="hello"),
    )
    bus = await parted.bus("gateway")
    await bus.publish(key.in_user, encode(event))
    home = parted.settings.home
    (home / "run").mkdir(exist_ok=True)
    (home / "run" / "up.json").write_text(json.dumps({"nats_url": parted.broker.url}))
    program = re.findall(r"```python\n(.*?)```", page("bus.md"), re.S)[0]
    process = await start(
        sys.executable, "-u", "-c", program,
        env=os.environ | {"VIGIL_HOME": str(home)}, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 20)
        stored = (await bus.layout()).stored(key.in_user)
        assert stored != key.in_user or parted.settings.config.nats.partitions == 1
        assert line.decode().startswith(f"1 {stored} ")
        assert b'"hello"' in line
    finally:
        process.kill()
        await process.wait()


# ---------------------------------------------------------------- HTTP


def test_every_endpoint_is_listed() -> None:
    """P-5"""
    served = {f"{one.method} {one.path.replace(':path', '')}" for one in endpoints()}
    served |= {f"POST {MESSAGES_PATH}", "GET /openapi.json"}
    text = " ".join(section("api.md", "Endpoints").split())
    listed = re.findall(r"`([A-Z]+ /[^`\s]*)`", text)
    assert sorted(listed) == sorted(served)


@pytest.mark.parametrize("text", re.findall(r"```json\n(.*?)```", page("api.md"), re.S))
def test_json_of_the_api_page_is_json(text: str) -> None:
    json.loads(text)


# ---------------------------------------------------------------- the pages themselves


def anchor_of(heading: str) -> str:
    """Return the anchor that forges give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links() -> Iterator[tuple[Path, str]]:
    for file in PAGES:
        text = re.sub(r"```.*?```", "", file.read_text("utf-8"), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if not re.match(r"[a-z]+:", target):
                yield file, target


def test_every_relative_link_leads_somewhere() -> None:
    broken = []
    for file, target in links():
        path, _, anchor = target.partition("#")
        found = (file.parent / path).resolve() if path else file
        if not found.exists():
            broken.append(f"{file.name}: {target}")
        elif anchor:
            headings = re.findall(r"^#+ (.+)$", found.read_text("utf-8"), re.MULTILINE)
            if anchor not in map(anchor_of, headings):
                broken.append(f"{file.name}: {target}")
    assert broken == []


def test_every_page_is_linked() -> None:
    """A page that nobody links to is read by nobody."""
    linked = {(file.parent / target.partition("#")[0]).resolve() for file, target in links()}
    others = set(PAGES) - {ROOT / "README.md"}
    assert others - linked == set()


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for file in PAGES:
        text = file.read_text("utf-8")
        named = set(re.findall(r"`make (\w+)`|^    make (\w+)", text, re.MULTILINE))
        assert {name for pair in named for name in pair if name} <= targets, file.name


def test_no_page_names_a_machine() -> None:
    """Paths of whoever wrote a page lead nobody anywhere."""
    for file in PAGES:
        text = file.read_text("utf-8")
        assert str(ROOT) not in text, file.name
        assert f"{Path.home()}/" not in text, file.name
