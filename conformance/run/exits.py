"""The exit codes of every command, and of pytest where it judges a backend."""

from enum import IntEnum


class Exit(IntEnum):
    """What the exit code of every command means."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_BACKEND = 3
    INCONCLUSIVE = 4
    INTERRUPTED = 130
