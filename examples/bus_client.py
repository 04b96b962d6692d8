"""The same on the bus: publish an event over NATS and follow signals, with `vigil.BusClient`.

.venv/bin/vigil token create --user me --bus --json > credential.json
.venv/bin/python examples/bus_client.py credential.json me:vigil:example
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from vigil import BusClient


async def main(credential: dict[str, Any], session: str) -> None:
    async with await BusClient.connect(credential) as bus:
        event_id = await bus.publish_event(
            session, "build.failed", {"job": "nightly", "tests": 3}, source="https://ci.example"
        )
        print(f"event {event_id} is stored")
        async for signal in bus.signals():
            print(f"{signal.kind}: {signal.text}")
            if signal.session_key == session and signal.kind.startswith("message."):
                break


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text("utf-8")), sys.argv[2]))
