"""Making another agent's identity that of one here."""

from __future__ import annotations

from vigil.sdk.client import Client

from .home import Reading
from .intake import HomeReport, TakenCount


def take_identity(client: Client, agent: str, found: Reading, report: HomeReport) -> None:
    """Write the files that say who the agent is; what they said before is reported.

    Raises: ApiError with status 403, the caller is no admin.
    """
    here = {one["name"]: one for one in client.agent_files(agent)}
    count = report.taken.setdefault("identity", TakenCount())
    for path in [path for path in report.kept if path.split("/")[-1] in found.identity]:
        name = path.split("/")[-1]
        text, file = found.identity[name].strip(), here[name]
        del report.kept[path]
        if file["text"].strip() == text:
            count.known += 1
        else:
            report.replaced[name] = file["text"]
            client.write_agent_file(agent, name, text, digest=file["digest"])
            count.taken += 1
