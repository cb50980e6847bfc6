"""Access control of the HTTP server: checks of Host, Origin and token, and security headers on all answers.

A foreign page, open in the same browser, can send requests to this machine, and can let a host name of its own point
here (DNS rebinding). So the Host of a request must be one of this server's names, and so must an Origin, if sent.
"""

import secrets
from hashlib import sha256
from urllib.parse import SplitResult, parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
POLICY = "default-src 'none'; frame-ancestors 'none'"  # of answers that are no pages


class Guard:
    """ASGI middleware that refuses requests of wrong Host, Origin or token, and adds security headers to answers.

    Args:
        app: the ASGI application that answers requests that are let in; an answer that is a page has the
            Content-Security-Policy that the page needs, and all others get `POLICY`.
        token: the token that a visitor has to send once, as `?token=`; None: no token, but the Host of a request has
            to be a loopback name.
    """

    def __init__(self, app: ASGIApp, token: str | None = None) -> None:
        self.app = app
        self.token = token
        # A browser sends the cookies of a host to all of its ports: each server has a name of its own.
        self.cookie = f"heedful-{sha256((token or '').encode()).hexdigest()[:8]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse or redirect a request, or pass it on to the application; add security headers to the answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Content-Security-Policy", POLICY)
            await send(message)

        answer = self.refusal(scope) or self.entrance(scope)
        await (answer or self.app)(scope, receive, send_guarded)

    def refusal(self, scope: Scope) -> Response | None:
        """Return the refusal of a request with a wrong Host or a foreign Origin; None if both are right."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.token is None and split(f"//{host}").hostname not in LOOPBACK:
            return PlainTextResponse(f"this server is not called {host!a}\n", 421)
        origin = headers.get("origin")
        if origin is not None and split(origin).netloc != host:
            return PlainTextResponse("a page of another server may not ask this one\n", 403)
        return None

    def entrance(self, scope: Scope) -> Response | None:
        """Check the token: turn `?token=` into a cookie, refuse requests with neither; None lets the request in."""
        if self.token is None:
            return None
        [brought] = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[:1]
        if self.is_token(brought):
            answer = RedirectResponse(scope["path"], 303)
            answer.set_cookie(self.cookie, brought, httponly=True, samesite="strict")
            return answer
        cookies = cookie_parser(Headers(scope=scope).get("cookie", ""))
        if self.is_token(cookies.get(self.cookie, "")):
            return None
        return PlainTextResponse("open the address that heedful printed, with its token\n", 401)

    def is_token(self, text: str) -> bool:
        """True if the text is the server's token; compares in constant time."""
        return self.token is not None and secrets.compare_digest(text.encode(), self.token.encode())


def split(address: str) -> SplitResult:
    """Split a URL into its parts, which are empty if the URL is invalid."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
