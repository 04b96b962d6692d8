"""What is said over the wire besides plain JSON: CloudEvents, and streams of events."""
