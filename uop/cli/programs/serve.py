"""`uop serve`: a page on this machine to try programs on."""

from __future__ import annotations

import socket

import click

from uop.spec.errors import UnsupportedError

ADDRESSES = {
    "127.0.0.1": (socket.AF_INET, "127.0.0.1"),
    "localhost": (socket.AF_INET, "127.0.0.1"),
    "::1": (socket.AF_INET6, "::1"),
}
"""The loopback: nothing outside of this machine reaches it."""
FIRST = "%0 = PARAM [2,2] {slot=0, dtype=float32}\n%1 = REDUCE %0 {op=ADD, axes=(1)}\n%2 = EXP2 %1"


@click.command("serve")
@click.option(
    "--host",
    type=click.Choice(list(ADDRESSES)),
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on, which this machine alone reaches.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8642,
    show_default=True,
    help="The port to listen on; 0 for any that is free.",
)
def serve(host: str, port: int) -> None:
    """Serve a page to try programs on, until Ctrl-C.

    Type a program, or pick one: the page shows its graph with the value of each node, what each
    stage of the compiler leaves, each firing of a rule, the source, and what other backends give.
    Nothing of a program runs as Python, native code is refused, and each evaluation is a process
    with little time and memory.
    """
    from uop.cli.suite.backends import usable
    from uop.conformance.playground.worker import Evaluate, answered
    from uop.conformance.workers.forked import prepare

    try:
        import uvicorn

        from uop.conformance.playground.app import app
    except ModuleNotFoundError as error:
        raise UnsupportedError(f'{error}; install it with: pip install "uop[serve]"') from error
    with listening(host, port) as listener:
        address, number = listener.getsockname()[:2]
        application = app(number, usable())
        # Each evaluation is a fork: what one has imported and cached here, all others have.
        answered(Evaluate(FIRST, "opencl", 0))
        prepare()
        config = uvicorn.Config(
            application,
            http="h11",
            ws="none",
            lifespan="off",
            # Of bad requests their sender hears; of one that Ctrl-C cuts off nobody needs to.
            log_level="critical",
            limit_concurrency=64,
            timeout_graceful_shutdown=1,
            server_header=False,
        )
        shown = f"[{address}]" if ":" in address else address
        click.echo(f"http://{shown}:{number}/ (Ctrl-C ends it)")
        uvicorn.Server(config).run(sockets=[listener])


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens on the loopback."""
    family, address = ADDRESSES[host]
    try:
        return socket.create_server((address, port), family=family)
    except OSError as error:
        said = error.strerror or error
        raise click.ClickException(f"cannot listen on {host}, port {port}: {said}") from error
