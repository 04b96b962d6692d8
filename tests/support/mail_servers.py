"""Real Postfix and Dovecot on loopback and free ports, in a folder of their own, ended by id.

Only root can start them, as on a machine for tests. Mail for any of the accounts is delivered to a
Maildir that Dovecot shows. Postfix says who wrote a mail as a server of the field does
(Authentication-Results): by the sender of the envelope, which tests choose.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import imaplib
import json
import os
import pwd
import shutil
import signal
import smtplib
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.mail_configuration import (
    DOVECOT_2_3,
    DOVECOT_2_4,
    MAIN_CF,
    MASTER_CF,
    OAUTH2,
    SERVICES,
)
from tests.support.pauses import pauses
from vigil.broker import ports

PASSWORD: Final = "correct-horse"
KEY: Final = b"k" * 32
HOST: Final = "mx.a.example"
ACCOUNTS: Final = 40
START_S: Final = 20.0
_SBIN: Final = "/usr/sbin"
_POSTFIX_BIN: Final = Path("/usr/lib/postfix/sbin")


def token_for(user: str) -> str:
    """Return an access token that Dovecot believes: a JWT."""
    facts = {
        "sub": user,
        "email": user,
        "iat": int(time.time()) - 5,
        "exp": int(time.time()) + 3600,
    }
    head = {"typ": "JWT", "alg": "HS256", "kid": "default"}
    text = ".".join(_url_safe(json.dumps(one).encode()) for one in (head, facts))
    return f"{text}.{_url_safe(hmac.new(KEY, text.encode(), hashlib.sha256).digest())}"


def _url_safe(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def missing() -> str:
    """Return why the servers can't be started here; empty: they can."""
    if os.geteuid() != 0:
        return "only root can start Postfix and Dovecot"
    there = (shutil.which("dovecot", path=_SBIN), shutil.which("postfix", path=_SBIN))
    return "" if all(there) else "Postfix and Dovecot aren't installed (see the Makefile)"


class MailServers:
    """Two servers with accounts ``vigilN@a.example``, ``annN@b.example`` and ``malN@c.example``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        names = ("smtp", "smtps", "mx", "imap", "imaps", "auth")
        self.ports = dict(zip(names, _free_ports(len(names)), strict=True))
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._taken = 0

    def account(self) -> int:
        """Return a number whose three accounts nobody has had yet."""
        self._taken += 1
        return self._taken - 1

    # ------------------------------------------------------------ start and end

    def prepare(self) -> None:
        mail = pwd.getpwnam("mail")
        self.root.chmod(0o755)
        facts: dict[str, Any] = {
            "root": self.root,
            "host": HOST,
            "uid": mail.pw_uid,
            "gid": mail.pw_gid,
            "password": PASSWORD,
            **self.ports,
        }
        for name in ("queue", "data", "mail", "dovecot", "postfix"):
            (self.root / name).mkdir()
        os.chown(self.root / "mail", mail.pw_uid, mail.pw_gid)
        os.chown(self.root / "data", pwd.getpwnam("postfix").pw_uid, 0)
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-keyout",
                "key.pem",
                "-out",
                "cert.pem",
            ],
            cwd=self.root,
            check=True,
            capture_output=True,
        )
        boxes = [
            (f"{who}{n}@{domain}", f"{who}{n}/")
            for n in range(ACCOUNTS)
            for who, domain in (("vigil", "a.example"), ("ann", "b.example"), ("mal", "c.example"))
        ]
        self._write("boxes", "".join(f"{address} {box}\n" for address, box in boxes))
        said = f"PREPEND Authentication-Results: {HOST}; dmarc="
        self._write(
            "verdicts",
            f"b.example {said}pass header.from=b.example\n"
            f"c.example {said}fail header.from=b.example\n",
        )
        self._write("postfix/main.cf", MAIN_CF.format(**facts))
        self._write("postfix/master.cf", MASTER_CF.format(**facts))
        version = subprocess.check_output([f"{_SBIN}/dovecot", "--version"], text=True)
        dovecot = DOVECOT_2_3 if version.startswith("2.3.") else DOVECOT_2_4
        self._write("dovecot.conf", (dovecot + SERVICES).format(**facts))
        self._write("oauth2.conf", OAUTH2.format(**facts))
        (self.root / "keys/default/HS256").mkdir(parents=True)
        self._write("keys/default/HS256/default", base64.b64encode(KEY).decode())
        subprocess.run(
            [f"{_SBIN}/postfix", "-c", str(self.root / "postfix"), "check"],
            check=True,
            capture_output=True,
        )

    def _write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def start(self, *names: str) -> None:
        """Start ``imap`` and ``smtp``, or one of them, and wait until it answers."""
        for name in names:
            if name == "smtp":
                (self.root / "queue/pid/master.pid").unlink(missing_ok=True)
                line = [str(_POSTFIX_BIN / "master"), "-c", str(self.root / "postfix"), "-d"]
            else:
                line = [f"{_SBIN}/dovecot", "-F", "-c", str(self.root / "dovecot.conf")]
            self._running[name] = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._await(name)

    def _await(self, name: str) -> None:
        until = time.monotonic() + START_S
        pause_s = pauses()
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.ports[name]), 1) as line:
                    line.settimeout(5)
                    if line.recv(4):
                        return
            except OSError:
                pass
            if time.monotonic() > until or self._running[name].poll() is not None:
                raise AssertionError(f"{name} doesn't start: {self.log()}")
            time.sleep(next(pause_s))

    def kill(self, name: str) -> None:
        """End a server and all of its processes at once, whatever they are doing."""
        process = self._running.pop(name)
        process.kill()
        # One that was just begotten would keep the port, and greet in the place of the next.
        while pids := _session_of(process.pid):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """End both in order, so that they wait for their children; else at once."""
        for process in self._running.values():
            process.terminate()
        for name in list(self._running):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._running[name].wait(3)
            self.kill(name)

    def log(self) -> str:
        found = (self.root / name for name in ("postfix.log", "dovecot.log"))
        return "\n".join(one.read_text()[-3000:] for one in found if one.exists())

    # ------------------------------------------------------------ mail

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.root / "cert.pem"))

    def post(self, mail: EmailMessage | bytes, to: str, *, sender: str) -> None:
        """Hand a mail over as another mail server does: at a door that asks nobody to sign in, as
        Postfix begins no process that would while Dovecot, which checks passwords, is away."""
        data = mail if isinstance(mail, bytes) else mail.as_bytes(policy=SMTP)
        with smtplib.SMTP("127.0.0.1", self.ports["mx"], timeout=20) as client:
            client.sendmail(sender, [to], data)

    def drop(self, who: str, *mails: bytes) -> None:
        """Put mails into somebody's mailbox, as if all had come at once; the server's word of whom
        they are is for the test to write."""
        mail, box = pwd.getpwnam("mail"), self.root / "mail" / who
        for folder in (box, *(box / name for name in ("cur", "tmp", "new"))):
            folder.mkdir(exist_ok=True)
            os.chown(folder, mail.pw_uid, mail.pw_gid)
        for number, data in enumerate(mails):
            name = f"{time.time():.6f}.M{number:06}P{os.getpid()}.host"
            (box / "tmp" / name).write_bytes(data)
            os.chown(box / "tmp" / name, mail.pw_uid, mail.pw_gid)
            (box / "tmp" / name).rename(box / "new" / name)

    @contextlib.contextmanager
    def mailbox(self, who: str) -> Iterator[imaplib.IMAP4]:
        """Open somebody's mailbox as their own mail program does."""
        client = imaplib.IMAP4("127.0.0.1", self.ports["imap"], timeout=20)
        try:
            client.login(who, PASSWORD)
            client.select("INBOX")
            yield client
        finally:
            with contextlib.suppress(OSError, imaplib.IMAP4.error):
                client.logout()

    def mails(self, who: str) -> list[bytes]:
        """Return the mails in somebody's mailbox, in order, marking none."""
        with self.mailbox(who) as client:
            _, found = client.uid("FETCH", "1:*", "(BODY.PEEK[])")
            return [one[1] for one in found if isinstance(one, tuple)]

    def validity(self, who: str) -> bytes:
        """Return the mailbox's UIDVALIDITY."""
        with self.mailbox(who) as client:
            found: bytes = client.response("UIDVALIDITY")[1][0]
            return found

    def flags(self, who: str) -> list[bytes]:
        with self.mailbox(who) as client:
            _, found = client.uid("FETCH", "1:*", "(FLAGS)")
            return [one for one in found if isinstance(one, bytes)]


def _free_ports(count: int) -> set[int]:
    found: set[int] = set()
    while len(found) < count:
        found.add(ports.free_port())
    return found


def _session_of(leader: int) -> list[int]:
    """Return the processes that live in a session, by who began it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader and fields[0] not in "ZX":
                    found.append(int(entry.name))
    return found


@contextlib.contextmanager
def running_mail_servers() -> Iterator[MailServers]:
    """Both servers, started; the test is skipped where they can't be."""
    if why := missing():
        pytest.skip(why)
    root = Path(tempfile.mkdtemp(prefix="vigil-mail-"))
    servers = MailServers(root)
    try:
        servers.prepare()
        servers.start("imap", "smtp")  # which asks Dovecot who somebody is
        yield servers
    finally:
        servers.close()
        shutil.rmtree(root, ignore_errors=True)
