"""Tell a Vigil session something over NATS: plain nats-py, nothing of Vigil.

    vigil token create --bus --user ann --name ci --json > credential.json
    pip install "nats-py[nkeys]"
    python publish_event.py credential.json ann:vigil:t1 build.failed '{"branch": "main"}'

The last argument is told as it is; JSON is nothing special. Once it prints "stored", the broker
has the event on disk. Run it again with --id and the same id, and nothing more happens.
"""

import argparse
import asyncio
import json
import uuid
from pathlib import Path

import nats


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("credential", type=Path, help="what `vigil token create --bus` printed")
    parser.add_argument("session", help="userId:agentId:threadId")
    parser.add_argument("type", help="what happened")
    parser.add_argument("data")
    parser.add_argument("--id", default=str(uuid.uuid4()), help="your own name of the event")
    wanted = parser.parse_args()
    credential = json.loads(wanted.credential.read_text())

    event = {
        "specversion": "1.0",
        "id": wanted.id,
        "source": "urn:example:ci",
        "type": wanted.type,
        "subject": wanted.session,
        "datacontenttype": "text/plain",
        "data": wanted.data,
    }
    connection = await nats.connect(
        credential["url"],
        nkeys_seed=credential["seed_file"],
        inbox_prefix=credential["inbox_prefix"].encode(),
    )
    stored = await connection.jetstream().publish(
        credential["publish"], json.dumps(event).encode(), timeout=5
    )
    print(f"stored: {stored.stream} {stored.seq}")
    await connection.drain()


asyncio.run(main())
