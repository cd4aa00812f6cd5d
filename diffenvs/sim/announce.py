"""A line for people who wait."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def announced(line: str, *, after: float) -> Iterator[None]:
    """Print ``line`` to the standard error if what is done in this block takes longer than ``after`` seconds."""

    def say() -> None:
        print(line, file=sys.stderr, flush=True)

    timer = threading.Timer(after, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
