"""What a service tells of itself: logs, metrics, traces, health."""
