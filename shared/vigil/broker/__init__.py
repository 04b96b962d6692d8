"""The broker: nats-server as a process of ours, its configuration, streams and accounts."""
