"""The bus: NATS JetStream as Vigil uses it. Streams, consumers, buckets, leases, requests."""
