"""Follow what happens in Vigil over NATS: plain nats-py, nothing of Vigil.

    vigil token create --bus --user ann --name ci --json > credential.json
    pip install "nats-py[nkeys]"
    python follow_signals.py credential.json

Each signal is one line of JSON. They come from the credential's durable consumer, so what happens
while this program is away comes when it is back; it says of each that it has it. With --live they
come by a plain subscription, and only while it runs.
"""

import argparse
import asyncio
import json
from pathlib import Path

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("credential", type=Path, help="what `vigil token create --bus` printed")
    parser.add_argument("--live", action="store_true", help="only what happens from now on")
    parser.add_argument("--count", type=int, default=0, help="end after so many; 0: never")
    wanted = parser.parse_args()
    credential = json.loads(wanted.credential.read_text())
    connection = await nats.connect(
        credential["url"],
        nkeys_seed=credential["seed_file"],
        inbox_prefix=credential["inbox_prefix"].encode(),
    )
    follow = live if wanted.live else durable
    await follow(connection, credential, wanted.count)
    await connection.close()


async def durable(connection: Client, credential: dict[str, str], count: int) -> None:
    """Pull from the consumer that was made with the credential, and acknowledge."""
    jetstream = connection.jetstream(domain=credential["domain"])
    consumer = await jetstream.pull_subscribe_bind(
        credential["consumer"], stream=credential["stream"]
    )
    seen = 0
    while not count or seen < count:
        try:
            messages = await consumer.fetch(10, timeout=5)
        except TimeoutError:
            continue  # nothing happened
        for message in messages:
            show(message)
            await message.ack()
        seen += len(messages)


async def live(connection: Client, credential: dict[str, str], count: int) -> None:
    """Subscribe: nothing is kept for us."""
    subscription = await connection.subscribe(credential["signals"])
    await connection.flush()
    print("listening", flush=True)
    seen = 0
    async for message in subscription.messages:
        show(message)
        seen += 1
        if count and seen >= count:
            break


def show(message: Msg) -> None:
    print(message.data.decode(), flush=True)


asyncio.run(main())
