"""An agent through llm, a chat program for the terminal, unchanged (docs/clients.md)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.test_openai_programs import history, threads
from tests.acceptance.test_openai_tools import results
from tests.support.agent import ask
from tests.support.world import running_world
from vigil.processes.process import start

LLM: Final = Path(sys.prefix) / "llm/bin/llm"
PATIENCE_S: Final = 60.0
MODELS: Final = """
- model_id: vigil
  model_name: vigil
  api_base: {base}
  api_key_name: vigil
  supports_tools: true
- model_id: nobody
  model_name: nobody
  api_base: {base}
  api_key_name: vigil
"""
WEATHER: Final = """
def weather(town: str) -> str:
    "How warm it is"
    return f"21 in {town}"
"""
CALL: Final = ("caller__weather", {"town": "Rome"})


class Terminal:
    """Somebody with the program, and a folder for what it keeps."""

    def __init__(self, folder: Path) -> None:
        self._environ = {
            name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")
        } | {"LLM_USER_PATH": str(folder)}

    async def run(self, *args: str) -> tuple[int | None, str]:
        """Return how it ended, and all that it printed."""
        process = await start(
            str(LLM),
            *args,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environ,
        )
        try:
            async with asyncio.timeout(PATIENCE_S):
                printed, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        return process.returncode, printed.decode()


@pytest.mark.long
@pytest.mark.skipif(not LLM.exists(), reason="llm isn't installed (make .venv/.installed-llm)")
async def test_it_talks_goes_on_lends_its_tools_and_is_told_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_world(tmp_path / "vigil", monkeypatch) as world:
        ann = await world.person(has_socket=False)
        base = f"{str(ann.http.base_url).rstrip('/')}/v1"
        (folder := tmp_path / "llm").mkdir()
        (folder / "extra-openai-models.yaml").write_text(MODELS.format(base=base))
        (folder / "tools.py").write_text(WEATHER)
        llm = Terminal(folder)
        (keys := folder / "keys.json").write_text(json.dumps({"vigil": ann.token}))
        # Streamed, and going on whole.
        assert await llm.run("-m", "vigil", "Hello") == (0, "re: Hello\n")
        assert await llm.run("-c", "--no-stream", "And now") == (0, "re: And now\n")
        assert history(world.agent.requests[-1]) == ["Hello", "re: Hello", "And now"]
        assert list((await threads(ann)).values()) == [2]
        # Its own function is run there.
        lent = ("--functions", str(folder / "tools.py"), ask(CALL))
        assert await llm.run("-m", "vigil", *lent) == (0, "Done.\n")
        assert results(world.agent.requests[-1]) == ["21 in Rome"]
        code, printed = await llm.run("-m", "nobody", "Hello")
        assert code == 1
        assert "there is no agent" in printed
        keys.write_text(json.dumps({"vigil": "nope"}))
        code, printed = await llm.run("-m", "vigil", "Hello")
        assert (code, "401" in printed) == (1, True)
        assert len(await threads(ann)) == 2
