"""The entry point of the program `uop`: Ctrl-C ends it with one line from here on."""

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130


def leave(number: int, frame: FrameType | None) -> None:
    """End the process at once: nothing that must be ended has begun."""
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


is_program = __name__ == "__main__" or os.path.basename(sys.argv[0]) in ("uop", "uop.exe")
if is_program and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, leave)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; expected errors are printed on stderr, without a traceback."""
    from uop.cli.program import run  # click and the commands take a moment to load

    code = run(arguments)
    if is_program and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    return code


if __name__ == "__main__":
    sys.exit(main())
