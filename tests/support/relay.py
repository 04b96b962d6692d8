"""A program of ours by a command line, forked instead of begun anew, for who starts it themselves.

``python -IS relay.py ADDRESS MODULE ARGS`` hands its own files to a forked program, and ends as
that does (:func:`tests.support.warm.relayed`); Ctrl-C in its terminal is passed on. It imports
nothing of ours: 0.03 s of CPU.
"""

import json
import os
import signal
import socket
import sys

address, module, *args = sys.argv[1:]
asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asking.connect(f"\0{address}")
here = os.getcwd()  # noqa: PTH109 - `pathlib` takes as long to import as all of this
request = {"module": module, "args": args, "env": dict(os.environ), "cwd": here}
socket.send_fds(asking, [json.dumps(request).encode()], [0, 1, 2])
pid = int(asking.recv(64))
signal.signal(signal.SIGINT, lambda *_: os.kill(pid, signal.SIGINT))
for number in (0, 1, 2):  # whoever has the other ends sees when it ends
    os.close(number)
os._exit(os.waitstatus_to_exitcode(int(asking.recv(64))) % 256)
