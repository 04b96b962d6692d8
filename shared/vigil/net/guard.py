"""The way out to the web: a name is looked up once, judged, and exactly that is connected to.

The judgement is :mod:`vigil.net.ssrf`; this is what it needs to hold: the request goes on with the
address in the place of the name, so nothing can look the name up a second time and get another
answer. The name stays where it belongs, in the Host header and in the TLS handshake, whose
certificate is verified against it. Proxies of the environment are not used: they would connect
to where nobody judged.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Final

import httpx2

from . import ssrf
from .ssrf import Rules, Target

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""(host, port) -> its addresses as text."""
LOOKUPS_AT_ONCE: Final = 8
"""Of one transport."""
LOST_AT_ONCE: Final = "the connection was lost as it was opened"


class SystemResolver:
    """Asks the system, in threads of its own: names that hang hold up no other transport's."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LOOKUPS_AT_ONCE, "names")

    async def __call__(self, host: str, port: int) -> list[str]:
        """Return the addresses. Raises: OSError, the name can't be resolved now."""
        ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, ask)
        return [str(address[0]) for _, _, _, _, address in found]

    def close(self) -> None:
        """Ask nothing more; what hangs is left to end by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Connects to what `rules` allow, and to nothing else; one connection for each request.

    What connects is made for the first of them: reading whom the system trusts takes 30 ms.

    Args:
        resolve: None: the system is asked.
        tls: whom to trust; None: whom the system trusts.

    Raises, beside what httpx2's own transport raises:
        Refused: the URL, or an address of its host, may not be reached.
    """

    def __init__(
        self,
        rules: Rules,
        resolve: Resolve | None = None,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._verify: ssl.SSLContext | bool = True if tls is None else tls
        self._rules = rules
        self._system = SystemResolver()
        self._resolve: Resolve = self._system if resolve is None else resolve

    @cached_property
    def _connected(self) -> httpx2.AsyncHTTPTransport:
        # A connection that is kept would be one that nobody judged today, and one that the
        # receiver may have closed already: then nobody could tell whether it got the request.
        return httpx2.AsyncHTTPTransport(
            verify=self._verify,
            trust_env=False,
            limits=httpx2.Limits(max_keepalive_connections=0),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        if url.userinfo:
            raise ssrf.RequestRefused("url", "must not contain a user name or password")
        target = ssrf.judge(url.scheme, url.host, url.port, self._rules)
        addresses = await self._addresses(target)
        request.extensions["sni_hostname"] = target.host
        _share_out(request, len(addresses))
        for address in addresses[:-1]:
            request.url = url.copy_with(host=address)
            try:
                return await self._sent(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        request.url = url.copy_with(host=addresses[-1])
        return await self._sent(request)

    async def _sent(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._connected.handle_async_request(request)
        except AttributeError as error:
            # Before it sends, anyio looks at the socket, and uvloop has none of a lost connection.
            raise httpx2.ConnectError(LOST_AT_ONCE) from error

    async def aclose(self) -> None:
        self._system.close()
        if "_connected" in self.__dict__:
            await self._connected.aclose()

    async def _addresses(self, target: Target) -> list[str]:
        if target.address is not None:
            return [target.host]
        try:
            found = await self._resolve(target.host, target.port)
        except OSError as error:
            raise httpx2.ConnectError(f"the name can't be resolved: {error.strerror}") from error
        return ssrf.judge_addresses(found, self._rules)


def _share_out(request: httpx2.Request, count: int) -> None:
    """Give each of `count` addresses its part of the time that connecting may take."""
    timeouts = request.extensions.get("timeout", {})
    if connect_s := timeouts.get("connect"):
        request.extensions["timeout"] = {**timeouts, "connect": connect_s / count}
