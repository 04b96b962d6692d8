"""What `vigil doctor` says of memory: its folder, its embedder, and a Qdrant server.

Only a server that the settings name is called, once. Keys are never shown.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

from .. import distribution
from ..checks import Check, fail, nearest, ok, warn
from ..net.direct import opener
from ..settings.config import Settings
from ..texts.trouble import reason_of
from ..words.amounts import count_of

ANSWER_S: Final = 3.0
BLOCK_BYTES: Final = 512
"""What `st_blocks` counts (stat(2))."""
WITHOUT: Final = "until then recall goes by words alone, and says that it is degraded"
WORSE: Final = "its weights say which words are alike, and make vectors by default"


def folder(settings: Settings) -> Check:
    """Whether a replica can make its database where it belongs."""
    path = settings.memory
    existing = nearest(path)
    if not os.access(existing, os.W_OK | os.X_OK):
        return fail(f"{existing} is not writable", "correct its owner")
    slots = sorted(path.glob("*/memory.db"))
    if not slots:
        return ok(f"{path} (nothing made yet)")
    size = sum(_taken(one) for slot in slots for one in slot.parent.rglob("*") if _is(one))
    count = count_of(len(slots), "database")
    return ok(f"{count}, {size / 1024**2:.0f} MiB with the vectors")


def _taken(path: Path) -> int:
    """Return the bytes that a file takes: those of the engine of vectors are mostly holes."""
    return path.stat().st_blocks * BLOCK_BYTES


def _is(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def embedder(settings: Settings) -> Check | None:
    """Whether what makes vectors is named; whether it answers is for the service to find out."""
    config = settings.config.memory
    if config.embedder == "wordllama":
        return None
    if not config.embedder_model:
        return fail(f"{config.embedder}, without a model", "set memory.embedder_model")
    if config.embedder == "openai":
        return _endpoint(settings)
    return _model(Path(config.embedder_model).expanduser())


def weights(settings: Settings) -> Check | None:
    """Whether the words of the default embedder are here."""
    if distribution.weights() is not None:
        return None
    return warn(f"not installed: {WORSE}", distribution.weights_command())


def _endpoint(settings: Settings) -> Check:
    config = settings.config.memory
    if not config.embedder_url:
        return fail("openai, without an endpoint", "set memory.embedder_url")
    if not settings.embedder_api_key:
        found = f"{config.embedder_model}, no key"
        return warn(found, "set EMBEDDER_API_KEY if the endpoint needs one")
    return ok(f"{config.embedder_model} at {config.embedder_url}, key set")


def _model(path: Path) -> Check:
    if not path.is_dir():
        return warn(f"onnx, {path}", "no folder: fastembed fetches it at the first start")
    missing = [name for name in ("model.onnx", "tokenizer.json") if not (path / name).is_file()]
    if missing:
        return fail(f"{path} has no {' and no '.join(missing)}", "add it")
    return ok(f"onnx, {path}")


def qdrant(settings: Settings) -> Check | None:
    """Whether the server answers, and takes the key."""
    url, key = settings.config.memory.qdrant_url, settings.qdrant_api_key
    if not url:
        return None
    if not url.startswith(("http://", "https://")):
        return fail(f"{url} is no http or https URL", "correct QDRANT_URL")
    request = urllib.request.Request(f"{url.rstrip('/')}/collections")  # noqa: S310 - checked above
    if key:
        request.add_header("api-key", key)
    try:
        with opener().open(request, timeout=ANSWER_S):
            return ok(f"{url} answers{', key set' if key else ''}")
    except urllib.error.HTTPError as error:
        advice = "set QDRANT_API_KEY" if error.code in (401, 403) else WITHOUT
        return fail(f"{url} answers with {error.code}", advice)
    except (OSError, ValueError) as error:
        return warn(f"{url} can't be reached: {reason_of(error)}", WITHOUT)
