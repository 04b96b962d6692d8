"""Types of problems: what each means, and what to do about it. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..http.problem import title_of, type_of


class ProblemType(NamedTuple):
    """What an error of a status means."""

    means: str
    cures: tuple[str, ...]
    may_repeat: bool = False
    """Whether the same request may go well later."""


PROBLEMS: Final[dict[int, ProblemType]] = {
    400: ProblemType(
        "It is no HTTP that can be read safely, or has a header twice that may be there once.",
        (
            "Send `Host`, `Origin` and `Authorization` once.",
            "Look at what a proxy in between adds.",
        ),
    ),
    401: ProblemType(
        "There is no token, or it is unknown, ended or expired; or a webhook's signature is wrong.",
        (
            "Send `Authorization: Bearer pat_…`; a token in the URL doesn't count.",
            "`vigil token list` shows which there are, `vigil token create` makes one.",
            "For a webhook compare the secret of `[hooks.NAME]` with the sender's, and the clocks.",
        ),
    ),
    403: ProblemType(
        "The token is good, but not for this: it's another's, a team's, or an admin's.",
        (
            "Leave `userId` out, or name yourself.",
            "Ask an admin, or make an admin's token: `vigil token create --admin`.",
            "From a page: its origin has to be among `gateway.allowed_hosts`.",
        ),
    ),
    404: ProblemType(
        "There is no such path or thing, or it is another person's: which, isn't told.",
        (
            "Look at the id, and whose token it is.",
            "Lists such as `GET /api/sessions` show what there is.",
        ),
    ),
    405: ProblemType("The path takes other methods.", ("`Allow` names them.",)),
    406: ProblemType(
        "The answer has a form that the request doesn't take.",
        ("Send `Accept: application/json, text/event-stream`, as MCP asks for.",),
    ),
    408: ProblemType(
        "Head or body of the request came too slowly.",
        ("Send it again, faster.", "Raise `gateway.head_timeout_s` or `gateway.body_timeout_s`."),
        may_repeat=True,
    ),
    409: ProblemType(
        "It conflicts with how things are: decided, ended, used, or changed since it was read.",
        (
            "Read it again, and decide anew.",
            "With an idempotency key: use another for another request.",
        ),
    ),
    410: ProblemType(
        "It was there, and was deleted or is being deleted for good.",
        ("Begin a new one.", "Nothing brings it back but a backup."),
    ),
    412: ProblemType(
        "`If-Match` names another revision than the current one: somebody was faster.",
        ("Read it again, and send the change with its new revision.",),
    ),
    413: ProblemType(
        "The body is larger than allowed.",
        ("Send less, or a file as an attachment.", "Raise `gateway.body_bytes_max`."),
    ),
    415: ProblemType(
        "The body has a form that isn't taken here, or is packed.",
        ("Send `content-type: application/json`, or what the document of this path says.",),
    ),
    421: ProblemType(
        "The gateway isn't known under the name by which it was asked.",
        ("List that name in `gateway.allowed_hosts`.", "Have a proxy in between keep `Host`."),
    ),
    422: ProblemType(
        "The input can't be used; `field` names which part, `detail` why.",
        ("Mend that field.", "`/openapi.json` has the form of every body."),
    ),
    426: ProblemType(
        "The path is a WebSocket's.", ("Ask with `Upgrade: websocket`: `wss://` or `ws://`.",)
    ),
    429: ProblemType(
        "There were too many requests, open connections, or wrong tokens.",
        ("Wait for `Retry-After`, then send it again.", "Raise `gateway.rate_per_s`."),
        may_repeat=True,
    ),
    431: ProblemType("The headers are larger than allowed.", ("Send fewer cookies and headers.",)),
    500: ProblemType(
        "Something went wrong inside, and was logged.",
        ("Look into the gateway's log for that moment.", "Send it again with an idempotency key."),
        may_repeat=True,
    ),
    503: ProblemType(
        "Not now: a service, the broker or room on the disk is missing. It may have been stored.",
        (
            "Wait for `Retry-After`, then send it again, with an idempotency key.",
            "`vigil doctor` says what is missing.",
        ),
        may_repeat=True,
    ),
    504: ProblemType(
        "The answer isn't there yet; it comes into the conversation all the same.",
        (
            "Look into the conversation, or send the same again: it's the same message.",
            "Ask for it with `stream`, or raise `gateway.chat_wait_s`.",
        ),
        may_repeat=True,
    ),
}
"""By status."""


def page_of(status: int) -> str:
    """Return the page that tells of one."""
    problem = PROBLEMS[status]
    again = (
        "It may be sent again." if problem.may_repeat else "Sent again as it is, it fails again."
    )
    cures = "\n".join(f"* {one}" for one in problem.cures)
    title = title_of(status)
    kind = f"Status {status}, type `{type_of(status)}`."
    return f"# {title}\n\n{kind} {problem.means} {again}\n\n{cures}\n"
