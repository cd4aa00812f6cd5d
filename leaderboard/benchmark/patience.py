"""Waiting for other people's code, but not for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

SECONDS = 120.0


class Stuck(Exception):
    """A call did not return in time. Its thread cannot be ended and stays, idle or not."""


def wait_for(call: Callable[[], Any], what: str, seconds: float = SECONDS) -> Any:
    """The result of `call`, made in a thread; raises what it raises, and Stuck, naming `what`, after `seconds`."""
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True, name=what)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise Stuck(f"{what} did not return within {seconds:g} s")
    if errors:
        raise errors[0]
    return results[0]
