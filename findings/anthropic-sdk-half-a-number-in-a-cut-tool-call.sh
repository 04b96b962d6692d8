#!/usr/bin/env bash
# A call of a tool that `max_tokens` cut looks whole in the accumulated message of the Anthropic SDK.
#
# An answer may end in the middle of a tool's arguments: the API says stop_reason "max_tokens" then, and the stream's
# partial_json deltas stop at `{"delay_seconds": 36` of 3600. One would expect that the block of such a call has no
# input, or one without the value that wasn't finished, or some mark.
#
# Seen (2026-11-28, anthropic 2.10.0): the final message has a tool_use block with all its fields and `"delay_seconds": 36`, which
# fits the tool's schema. The deltas are parsed in a partial mode, in which a number that was cut is a number. Whoever
# runs what stands in `message.content` without a look at stop_reason runs a call that the model never made.
set -euo pipefail
version=2.10.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q "anthropic==$version"
cat > run.py <<'P'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import anthropic

PIECES = ['{"text": "', 'feed the c', 'at", "delay_seconds": 36']


def events():
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield "message_start", {"message": message}
    block = {"type": "tool_use", "id": "toolu_1", "name": "remind", "input": {}}
    yield "content_block_start", {"index": 0, "content_block": block}
    for piece in PIECES:
        delta = {"type": "input_json_delta", "partial_json": piece}
        yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    ended = {"stop_reason": "max_tokens", "stop_sequence": None}
    yield "message_delta", {"delta": ended, "usage": {"output_tokens": 20}}
    yield "message_stop", {}


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for name, data in events():
            line = json.dumps({"type": name, **data})
            self.wfile.write(f"event: {name}\ndata: {line}\n\n".encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = anthropic.Anthropic(api_key="none", base_url=f"http://127.0.0.1:{server.server_port}", max_retries=0)
properties = {"text": {"type": "string"}, "delay_seconds": {"type": "integer"}}
tool = {"name": "remind", "description": "Remind.",
        "input_schema": {"type": "object", "properties": properties, "required": list(properties)}}
asked = {"role": "user", "content": "remind me in an hour to feed the cat"}
with client.messages.stream(model="m", max_tokens=20, tools=[tool], messages=[asked]) as stream:
    message = stream.get_final_message()
block = message.content[0]
print("anthropic", anthropic.__version__)
print("sent by the server:", "".join(PIECES))
print("stop_reason:", message.stop_reason)
print("input of the call:", block.input)
assert message.stop_reason == "max_tokens"
assert block.input == {"text": "feed the cat", "delay_seconds": 36}, "the behaviour has changed"
P
venv/bin/python run.py
