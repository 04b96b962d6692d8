"""Tell an agent what happened, watch what it does about it, and ask why. Over HTTP.

export VIGIL_TOKEN=pat_…       # `make up` prints one; VIGIL_URL if it isn't on this machine
.venv/bin/python examples/client.py
"""

from __future__ import annotations

import os

from vigil import Client


def main() -> None:
    client = Client(os.environ.get("VIGIL_URL", "http://127.0.0.1:8420"), os.environ["VIGIL_TOKEN"])
    user = client.me()["user"]
    session = f"{user}:vigil:example"

    answer = client.chat("check back in 1 second", user=user, thread="example", agent="vigil")
    print(f"vigil: {answer['response']}")

    told = client.publish_event(
        session, "build.failed", {"job": "nightly", "tests": 3}, source="https://ci.example"
    )
    print(f"event {told['event_id']} is stored at {told['seq']}")

    # From the beginning of what is kept, so that nothing is missed between two calls.
    for signal in client.signals(session=session, after=0):
        print(f"{signal['kind']}: {signal.get('text', '')}")
        if signal.get("caused_by") == told["event_id"] and signal["kind"].startswith("message."):
            break

    story = client.why(told["event_id"], session=session)
    for step in story["steps"]:
        print(f"  {step['text']}")
    print(story["summary"])


if __name__ == "__main__":
    main()
