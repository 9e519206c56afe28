"""Runs the suite: options, the pool of processes, known failures."""

from enum import IntEnum


class Exit(IntEnum):
    """An exit code."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_BACKEND = 3
    INCONCLUSIVE = 4
    NOT_JUDGED = 125
    """Of `uop replay --bisect`: `git bisect run` skips the commit."""
    INTERRUPTED = 130
