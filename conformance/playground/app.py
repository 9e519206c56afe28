"""Serves the page of the playground on the loopback, and answers its questions.

Nothing of another site is answered: a name that leads here (DNS rebinding) shows in `Host`, a page
of elsewhere in `Origin`. Each question has a process of its own, few of them at a time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, get_args, get_type_hints

from anyio import CapacityLimiter, fail_after, to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from uop.compiler.pipeline import TARGETS
from uop.conformance.playground.page import MOST_TEXT, served_page
from uop.conformance.playground.worker import Question, ask
from uop.spec.errors import UopError

HOSTS = ("127.0.0.1", "localhost", "[::1]")
"""The names of the loopback, as a browser writes them."""
MOST_BODY = 8 * MOST_TEXT
"""The most bytes of a question: JSON may write a character in six."""
SECONDS = 10
"""The seconds until a question has come."""
WAITING = 16
"""The most questions that are answered, or wait for that."""
MOST_SEED = 1 << 31
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
FIELDS: Mapping[type[Question], Mapping[str, type]] = {
    kind: get_type_hints(kind) for kind in get_args(Question)
}


def app(port: int, backends: Sequence[str]) -> ASGIApp:
    """The server at a port, which lets programs run on these backends."""
    page = served_page(tuple(backends))

    def root(request: Request) -> Response:
        return Response(page, media_type="text/html")

    answers = Answers(backends)
    routes = [Route("/", root, methods=["GET"])]
    for kind in FIELDS:
        path = f"/{kind.__name__.lower()}"
        routes.append(Route(path, partial(answers.answer, kind), methods=["POST"]))
    known = ", ".join(route.path for route in routes)
    said = partial(_refusal, known=known)
    # What Starlette types as any exception is one of these.
    return Guard(Starlette(routes=routes, exception_handlers={HTTPException: said}), port)


class Guard:
    """Answers its own page alone: other hosts and origins learn nothing."""

    def __init__(self, inner: ASGIApp, port: int) -> None:
        self.inner = inner
        ending = {f":{port}", ""} if port == 80 else {f":{port}"}
        self.hosts = {host + end for host in HOSTS for end in ending}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.inner(scope, receive, send)
            return
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        is_own = len(hosts) == 1 and hosts[0].lower() in self.hosts
        if scope["type"] != "http" or not is_own or origins not in ([], [f"http://{hosts[0]}"]):
            await PlainTextResponse("", 403, HEADERS)(scope, receive, send)
            return
        await self.inner(scope, receive, partial(_send_with_headers, send))


async def _send_with_headers(send: Send, message: Any) -> None:
    if message["type"] == "http.response.start":
        own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
        message = {**message, "headers": [*message["headers"], *own]}
    await send(message)


class Answers:
    """Answers questions, a few at a time."""

    def __init__(self, backends: Sequence[str]) -> None:
        self.backends, self.waiting = backends, 0
        self.limiter: CapacityLimiter | None = None

    async def answer(self, kind: type[Question], request: Request) -> Response:
        """The answer as JSON; HTTPException for a bad question, and for one too many."""
        question = self.question(kind, await _body(request))
        if self.waiting >= WAITING:
            raise HTTPException(503, "too many questions at a time", {"Retry-After": "1"})
        self.waiting += 1
        # It belongs to an event loop, which begins after this object.
        self.limiter = self.limiter or CapacityLimiter(os.cpu_count() or 1)
        try:
            found = await to_thread.run_sync(
                ask, question, limiter=self.limiter, abandon_on_cancel=True
            )
        except UopError as error:
            raise HTTPException(422, str(error)) from error
        finally:
            self.waiting -= 1
        return Response(found, media_type="application/json")

    def question(self, kind: type[Question], data: bytes) -> Question:
        """The question in a body. HTTPException for anything else."""
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            raise HTTPException(400, "expected JSON") from None
        fields = FIELDS[kind]
        if not isinstance(found, dict) or found.keys() != fields.keys():
            raise HTTPException(400, f"expected an object with {', '.join(fields)}")
        for name, type_ in fields.items():
            if type(found[name]) is not type_:
                raise HTTPException(400, f"{name}: expected {type_.__name__}")
        choices = {"target": TARGETS, "backend": self.backends}
        for name, known in choices.items():
            if name in found and found[name] not in known:
                raise HTTPException(400, f"{name}: expected one of {', '.join(known)}")
        if not 0 <= found["seed"] < MOST_SEED or not 0 <= found.get("step", 0) < MOST_SEED:
            raise HTTPException(400, f"expected numbers from 0 to {MOST_SEED - 1}")
        if len(found["text"]) > MOST_TEXT:
            raise HTTPException(413, f"expected a program of at most {MOST_TEXT} characters")
        try:
            found["text"].encode()
        except UnicodeEncodeError:
            raise HTTPException(400, "text: expected no half a character") from None
        return kind(**found)


async def _body(request: Request) -> bytes:
    """The body of a request of JSON. HTTPException where it is too long, or takes too long."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "expected application/json")
    data = bytearray()
    try:
        with fail_after(SECONDS):
            async for part in request.stream():
                data += part
                if len(data) > MOST_BODY:
                    raise HTTPException(413, f"expected at most {MOST_BODY} bytes")
    except (TimeoutError, ClientDisconnect):
        raise HTTPException(408, f"expected a question within {SECONDS} s") from None
    return bytes(data)


async def _refusal(request: Request, error: Exception, known: str) -> Response:
    """One line for an error of HTTP."""
    assert isinstance(error, HTTPException)
    said = error.detail
    if error.status_code == 404:
        said = f"expected one of {known}"
    elif error.status_code == 405:
        said = f"expected {(error.headers or {}).get('Allow', 'another method')}"
    return PlainTextResponse(said, error.status_code, error.headers)
