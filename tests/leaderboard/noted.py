"""A reporter that remembers what a schedule told it, and waiting for what another process does."""

import time
from dataclasses import dataclass, field


@dataclass
class Noted:
    """Events, the largest number of active jobs, and the time that was left at every tick."""

    events: list = field(default_factory=list)
    most: int = 0
    left: list = field(default_factory=list)

    def found(self, job):
        self.events.append(("found", job.name))

    def started(self, job, step):
        self.events.append(("started", job.name, step.label))

    def finished(self, job, step, elapsed):
        self.events.append(("finished", job.name, step.label))

    def failed(self, failure):
        self.events.append(("failed", failure.job, failure.step))

    def tick(self, active, waiting, left):
        self.most = max(self.most, len(active))
        self.left.append(left())

    def of(self, kind):
        """Names of the jobs with that event, in order."""
        return [event[1] for event in self.events if event[0] == kind]


def wait_for(condition, seconds=20.0):
    """Wait until something is true; fail when it never is."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
