"""/a2a: agents for programs that speak Agent2Agent (A2A 1.0), and nothing of Vigil's.

The SDK reads and writes the wire; what it is asked is answered here, from the log. A task is one
message and what comes of it, a context a conversation. The SDK is an extra (`a2a`), and imported
with the first request (ADR 65).
"""
