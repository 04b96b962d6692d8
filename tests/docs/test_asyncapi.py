"""/asyncapi.json tells what is on the bus: checked against the specification, the structs, the
subjects and the golden files (SPEC P-7). docs/asyncapi.json is compared in test_reference.py.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from services.gateway.documents import bus as asyncapi
from tests.support.gateway import Gate, running_gateway
from vigil import __version__, topology
from vigil.contracts import golden
from vigil.layout import LogLayout
from vigil.past import places
from vigil.signals.kinds import KINDS
from vigil.subjects import Scope, SessionKey, outside, signals_of

ROOT: Final = Path(__file__).parents[2]
NODE: Final = ROOT / "tests" / "node"
SPECS: Final = NODE / "node_modules" / "@asyncapi" / "specs"


def made() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(asyncapi.encoded(__version__))
    return document


@pytest.fixture(scope="module")
def specification() -> dict[str, Any]:
    """The official schema of AsyncAPI 3.0.0, installed by npm from a lock."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed, so there is no official schema to check against")
    wanted = json.loads((NODE / "package.json").read_text())["devDependencies"]["@asyncapi/specs"]
    there = SPECS / "package.json"
    if not there.exists() or json.loads(there.read_text())["version"] != wanted:
        subprocess.run(
            [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
            cwd=NODE, check=True, timeout=120, capture_output=True,
        )  # fmt: skip
    schema: dict[str, Any] = json.loads((SPECS / "schemas" / "3.0.0.json").read_text("utf-8"))
    return schema


def test_the_document_is_asyncapi(specification: dict[str, Any]) -> None:
    """P-7: by the schema of those who wrote the specification."""
    checker = jsonschema.Draft7Validator(specification)
    assert [f"{list(e.path)}: {e.message}" for e in checker.iter_errors(made())] == []
    broken = made()
    broken["operations"]["sendEvent"]["action"] = "shout"
    assert not checker.is_valid(broken), "the schema must be able to say no"


async def test_the_gateway_serves_it_to_anybody(tmp_path: Path) -> None:
    """P-5, X-4"""
    async with running_gateway(tmp_path) as gate:
        answer = await (await _anonymous(gate)).get("/asyncapi.json")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == made()


async def _anonymous(gate: Gate) -> Any:
    return await gate.http()


# ---------------------------------------------------------------- records


def test_every_golden_file_is_an_example() -> None:
    """S-14: what is shown is what the tests decode for good; the newest version of each."""
    newest = golden.newest()
    newest.pop("timer")  # a schedule, inside of TIMERS: nobody else reads it
    messages = made()["components"]["messages"].values()
    shown = {one["name"]: one["payload"] for m in messages for one in m.get("examples", ())}
    shown.pop("cloud_event")  # no record of ours
    assert shown == newest


@pytest.mark.parametrize("name", [n for n, m in asyncapi.MESSAGES.items() if m.examples])
def test_every_example_is_valid(name: str) -> None:
    """P-7: by the schema that the document gives for it, references resolved."""
    document = made()
    message = document["components"]["messages"][name]
    schema = {"components": document["components"], **message["payload"]}
    for example in message["examples"]:
        jsonschema.Draft202012Validator(schema).validate(example["payload"])
        wrong = {k: v for k, v in example["payload"].items() if k != "id"} | {"v": "x"}
        if name != "cloudEvent":
            assert not jsonschema.Draft202012Validator(schema).is_valid(wrong)


# ---------------------------------------------------------------- subjects


def pattern_of(address: str) -> str:
    return re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^.]+)", re.escape(address))


def test_the_addresses_are_the_subjects() -> None:
    """P-7: as `vigil.subjects` builds them, and nobody else."""
    key = SessionKey("ann", "vigil", "t1")
    worker = key.of_kind("worker", "1f")
    built = {
        "events": outside("ann", "laptop"),
        "signals": key.signal("message.sent"),
        "sessionMessages": key.in_user,
        "sessionEvents": key.in_event("timer"),
        "sessionTold": key.in_event("told.e"),
        "sessionTurns": key.turn_for("sm"),
        "sessionSaid": key.out_said("e"),
        "sessionPast": places.of_role(key, "user"),
        "sessionReceipts": key.receipt("e"),
        "sessionSends": key.send("e"),
        "sessionAttempts": key.attempt("e"),
        "sessionCalls": key.call("e"),
        "systemEvents": worker.in_event("control"),
        "systemTold": key.of_kind("mind", "").in_event("told.e"),
        "systemTurns": worker.turn_for(""),
        "systemCalls": worker.call("e"),
        "board": key.board("job", "1f"),
        "slots": key.scope.slot("1f"),
        "mails": key.scope.mail("work"),
        "tools": "$KV.TOOLS.builtin",
        "pins": "$KV.PINS.files",
        "memories": Scope("vigil", "ann").record("save"),
        "deadLetters": key.dead("cortex"),
        "deadLetterEnds": key.dead("ended"),
    }
    channels = made()["channels"]
    assert channels.keys() == built.keys()
    for name, subject in built.items():
        match = re.fullmatch(pattern_of(channels[name]["address"]), subject)
        assert match, name
        assert match.groupdict().keys() == channels[name]["parameters"].keys()
        assert match.groupdict().get("agent", "vigil") == "vigil"
        assert match.groupdict().get("user", "ann") == "ann"
    assert signals_of("ann", kind="message.sent").count(".") == built["signals"].count(".")


def test_a_session_of_any_partition_has_an_address() -> None:
    """ADR 22: what an installation begins with is two logs."""
    key = SessionKey("ann", "vigil", "t1")
    pattern = pattern_of(made()["channels"]["sessionTurns"]["address"])
    for partitions, log in ((1, "session"), (2, "session-0")):
        match = re.fullmatch(pattern, LogLayout(partitions).stored(key.turn_for("s")))
        assert match
        assert match["log"] == log


def test_each_message_comes_somewhere() -> None:
    document = made()
    named = {name for one in document["channels"].values() for name in one["messages"]}
    assert named == set(document["components"]["messages"])


def test_kinds_and_types_are_those_there_are() -> None:
    """C-4"""
    parameters = made()["components"]["parameters"]
    about, happening = (set(parameters[name]["enum"]) for name in ("about", "happening"))
    assert {tuple(kind.split(".")) for kind in KINDS} <= {(a, h) for a in about for h in happening}
    published = {
        subject.rpartition(".in.")[2]
        for role in topology.ROLES.values()
        for subject in role.publishes
        if ".in." in subject
    }
    assert published - {"said.user", "told.*"} <= set(parameters["type"]["enum"])
