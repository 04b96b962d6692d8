"""LiteLLM's proxy in front of llama.cpp's own server, asked over both wires."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec

from services.cortex.model import LanguageModel, ModelAnswer, ModelError
from tests.cortex.asked import KEY, ask, user
from tests.cortex.test_llama_cpp import BASES, SAY
from tests.cortex.test_wires import SCHEMA, WAYS
from tests.support.listening import is_listening
from tests.support.llama_cpp import GREETING, JSON, WINDOW, llama_cpp
from vigil.broker.ports import free_port
from vigil.contracts import ToolUseBlock

from . import installed

VERSION: Final = "1.108.7"
START_S: Final = 300.0
_CONFIG: Final = """
model_list:
  - model_name: model-test
    litellm_params: {{model: openai/tiny, api_base: "{url}/v1", api_key: none}}
general_settings: {{master_key: {key}}}
"""
_NO_REQUESTS: Final = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}


class Wired(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one wire: by what was asked, what isn't as expected; empty: it is."""

    wire: str
    wrong: dict[str, str]


@contextlib.asynccontextmanager
async def litellm(behind: str, folder: Path) -> AsyncIterator[str]:
    """Run the proxy for the length of a block; give its address. Raises: NotInstalled."""
    bin_ = installed.of_pypi("litellm", [f"litellm[proxy]=={VERSION}"])
    (folder / "config.yaml").write_text(_CONFIG.format(url=behind, key=KEY))
    port, environ = free_port(), {"PATH": os.environ["PATH"], "HOME": str(folder)} | _NO_REQUESTS
    command = [str(bin_ / "litellm"), "--config", "config.yaml", "--host", "127.0.0.1"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--port", str(port)], env=environ, cwd=folder, stdout=log, stderr=log
        )
    try:
        async with asyncio.timeout(START_S):
            while not is_listening(port):
                assert process.poll() is None, f"it ended with {process.returncode}"
                await asyncio.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


async def run() -> AsyncIterator[Wired]:
    """Ask it for a text, a call, an answer by a schema, and too much, over each wire."""
    with tempfile.TemporaryDirectory(prefix="peers-") as name:
        folder = Path(name)
        async with llama_cpp(folder) as behind, litellm(behind, folder) as url:
            for wire, way in WAYS.items():
                model = way.to(url + BASES[wire])
                yield Wired(wire=wire, wrong=await _wrong(model))
                await model.close()


async def _wrong(model: LanguageModel) -> dict[str, str]:
    patient: dict[str, Any] = {"timeout_s": 120.0, "tools": ()}
    text = await ask(model, user("hello"), **patient)
    called = await ask(model, user("please call"), **patient | {"tools": (SAY,)})
    # A wire whose schema is ignored has it in words from the second time on.
    formed = [await ask(model, user("hello"), schema=SCHEMA, **patient) for _ in range(2)][-1]
    try:
        await ask(model, user("x" * WINDOW), **patient)
        kind = "an answer"
    except ModelError as error:
        kind = f"{error.kind} {error.limit_tokens}"
    return {
        "text": "" if text.text == GREETING else text.text,
        "call": "" if _calls_of(called) == [("say", {"word": "ok"})] else str(called.blocks),
        "schema": "" if formed.text == JSON else formed.text,
        "too long": "" if kind == f"too_long {WINDOW}" else kind,
    }


def _calls_of(answer: ModelAnswer) -> list[tuple[str, dict[str, Any]]]:
    return [(one.name, one.input) for one in answer.blocks if isinstance(one, ToolUseBlock)]
