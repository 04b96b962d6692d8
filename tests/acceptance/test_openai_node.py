"""An agent through OpenAI's SDK for Node, unchanged: streams, its own tools, errors."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.test_openai_programs import threads
from tests.acceptance.test_openai_tools import WARM, results
from tests.support.agent import ask
from tests.support.mcp_client import PACKAGES
from tests.support.world import running_world
from vigil.processes.process import start

MODULES: Final = PACKAGES.parent
PROGRAM: Final = Path(__file__).with_name("openai_program.mjs")
NODE: Final = shutil.which("node")
PATIENCE_S: Final = 60.0


@pytest.mark.skipif(
    NODE is None or not (MODULES / "openai").exists(),
    reason="needs Node, and its packages: `make test` installs them if there is npm",
)
async def test_a_program_in_node_streams_runs_its_tool_and_reads_each_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_world(tmp_path, monkeypatch) as world:
        ann = await world.person(has_socket=False)
        base = f"{str(ann.http.base_url).rstrip('/')}/v1"
        told = {"MODULES": str(MODULES), "BASE": base, "KEY": ann.token, "ASKS": ask(WARM)}
        process = await start(
            str(NODE), str(PROGRAM), stdout=subprocess.PIPE, env=os.environ | told
        )
        try:
            async with asyncio.timeout(PATIENCE_S):
                printed, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        models, streamed, called, *errors = map(json.loads, printed.splitlines())
        assert process.returncode == 0
        assert models == ["vigil"]
        assert streamed == "re: Hello"
        assert called == ["Done.", ["Rome"]]
        assert results(world.agent.requests[-1]) == ["21"]
        kinds = [(kind, status, param) for kind, status, param, _ in errors]
        assert kinds == [
            ("NotFoundError", 404, "model"),
            ("BadRequestError", 400, "response_format"),
            ("AuthenticationError", 401, None),
        ]
        assert "no agent" in errors[0][3]
        assert sorted((await threads(ann)).values()) == [1, 1]
