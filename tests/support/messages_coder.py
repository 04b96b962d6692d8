"""A script that acts as a model would that is asked to write and run something, behind the local
Messages API.

It knows nothing but what stands in the request, as a model does: so it doesn't matter who was
killed between two of them. Where a call's outcome is unknown it looks before it runs it again.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final

from tests.support.messages_replies import Reply, calls, said, says

ORDER: Final = "write a script that prints the first 20 primes, run it, and report"
PRIMES: Final = "2 3 5 7 11 13 17 19 23 29 31 37 41 43 47 53 59 61 67 71"
SCRIPT: Final = """\
found = []
number = 2
while len(found) < 20:
    if all(number % prime for prime in found):
        found.append(number)
    number += 1
print(*found)
"""
RUN: Final = "python3 primes.py | tee primes.txt && echo ran >> runs.txt"
APPEND: Final = re.compile(r"append (\d+) lines to (\S+)")


def coder(body: dict[str, Any]) -> Reply:
    """Write the script, run it, report; in the background if that is asked for."""
    content = said(body)[-1]["content"]
    results = [block for block in content if block["type"] == "tool_result"]
    if results:
        used = [b for b in said(body)[-2]["content"] if b["type"] == "tool_use"]
        return _go_on(body, used[-1], results[-1])
    text = "\n".join(block["text"] for block in content if block["type"] == "text")
    if "[Result]" in text:
        return says(f"The worker is done: {PRIMES if PRIMES in text else text[-2000:]}")
    if "in the background" in text:
        return _call(body, "spawn_worker", {"task": ORDER})
    if ORDER in text:
        return _write(body)
    if match := APPEND.search(text):
        return _append(body, int(match[1]), match[2])
    return says("Hello.")


def _go_on(body: dict[str, Any], used: dict[str, Any], result: dict[str, Any]) -> Reply:
    """Decide from what the last call brought."""
    told, is_error = _text(result), bool(result.get("is_error"))
    if match := APPEND.search(_asked(body)):
        return _append(body, int(match[1]), match[2])
    name = used["name"]
    if name == "spawn_worker":
        return says("I am at it.")
    if name == "shell" and "ambiguous" in told:
        return _call(body, "read_file", {"path": "."})
    if name == "shell" and PRIMES in told:
        return says(f"The first 20 primes: {PRIMES}")
    if is_error or name == "shell":
        return says(f"That did not work: {told}")
    is_written = name == "write_file" or "primes.py" in told
    return _call(body, "shell", {"command": RUN}) if is_written else _write(body)


def _write(body: dict[str, Any]) -> Reply:
    return _call(body, "write_file", {"path": "primes.py", "content": SCRIPT})


def _append(body: dict[str, Any], count: int, name: str) -> Reply:
    """Append the next line that wasn't asked for yet; each call is made once, whatever came of
    it."""
    asked, messages = _asked(body), said(body)
    since = max(n for n, m in enumerate(messages) if asked in json.dumps(m["content"]))
    made = [
        block
        for message in messages[since:]
        for block in message["content"]
        if block["type"] == "tool_use"
    ]
    if len(made) < count:
        return _call(body, "shell", {"command": f"sleep 0.2; echo line-{len(made)} >> {name}"})
    return says(f"Appended {count} lines.")


def _asked(body: dict[str, Any]) -> str:
    """Return the last text of a user's, which the loop is about."""
    for message in reversed(said(body)):
        if message["role"] == "user":
            for block in message["content"]:
                if block["type"] == "text":
                    return str(block["text"])
    return ""


def _call(body: dict[str, Any], name: str, arguments: dict[str, Any]) -> Reply:
    digest = hashlib.sha256(json.dumps(said(body)).encode()).hexdigest()[:16]
    return calls(name, arguments, call_id=f"toolu_{digest}")


def _text(result: dict[str, Any]) -> str:
    content = result["content"]
    return content if isinstance(content, str) else "".join(b.get("text", "") for b in content)
