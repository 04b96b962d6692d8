"""The bus: NATS JetStream as Vigil uses it. Streams, consumers, buckets, leases, requests.

nats-py imports aiohttp, if that is there, for addresses that begin with ws:, which we have none of.
That is 0.08 s and 11 MB of each process (nats-py 2.16, aiohttp 3.14). It imports its own JetStream,
which is 0.01 s: only programs outside use it (`vigil.sdk.bus_client`).
"""

from ..imports import import_without, imported_late

with imported_late("nats.js"):
    import_without("nats.aio.transport", "aiohttp")
