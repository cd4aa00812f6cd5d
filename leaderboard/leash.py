"""Run a command that ends when the process that started it ends: `python leash.py PARENT COMMAND...`.

A leaderboard killed outright (SIGKILL, out of memory) cannot stop its children. Left alone they would go on
writing into run folders that the next leaderboard resumes. The kernel is asked to send them SIGINT instead,
on which an agent saves its checkpoint. Linux only; elsewhere the lock on the folder is the guard.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    parent, *command = arguments
    # A shell starts background jobs with SIGINT ignored, and children inherit that; an agent must hear it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        if os.getppid() != int(parent):
            sys.exit("leash: the parent ended before the command began")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
