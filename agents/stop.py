"""Stopping a training between two iterations on Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class StopRequest:
    """In its block the first SIGINT or SIGTERM only sets :attr:`signal`; a second SIGINT interrupts."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.signal: int | None = None
        self._previous: dict = {}

    def __enter__(self) -> StopRequest:
        # Python lets only the main thread install handlers.
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._receive) for number in self.SIGNALS}
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def leave(self) -> None:
        """Ends the process as the signal would have, if there was one."""
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal is not None:
            raise SystemExit(128 + self.signal)

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number
