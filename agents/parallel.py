"""One training in several processes: each simulates its part of the worlds, all learn the same.

World i of the whole batch is the same world whatever the number of processes: process r has a contiguous part of
them, with the seeds and the action noise that they have in one process. What is learned from is gathered in the
worlds' order or added up over the processes, so parameters differ from those of one process by rounding alone.

An algorithm is given :class:`Alone` or :class:`Ranks` and asks both the same. Every method but ``part``, ``share``,
``place`` and ``own`` is a meeting: all ranks call it, in the same order.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

# What torchrun tells each process. With all of them missing nothing of torch.distributed is called.
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# A rank that died is noticed at once, one that hangs only by this.
PATIENCE = timedelta(minutes=10)


class LostRank(RuntimeError):
    """Another process of the training has failed or does not answer."""


@dataclass(frozen=True)
class Alone:
    """One process: all worlds are its own, and there is nobody to meet."""

    rank: int = 0
    size: int = 1
    device: str = "cpu"

    @property
    def leads(self) -> bool:
        """Whether this process writes the run folder."""
        return True

    @property
    def speaks(self) -> bool:
        """Whether this process says what all processes on its machine find."""
        return True

    def place(self, device: str) -> str:
        """This process's device, of the kind asked for. Raises ValueError when there is none left for it."""
        return device

    @contextmanager
    def joined(self, device: str) -> Iterator[Alone]:
        """The same with its device; in the block the processes can meet."""
        yield replace(self, device=device)

    def part(self, rows: int) -> slice:
        """This process's part of so many rows."""
        return slice(0, rows)

    def share(self, num_envs: int) -> int:
        """Number of worlds that this process simulates. Raises ValueError when the processes' would differ."""
        return num_envs

    def own(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """The rows of this process's worlds, of an environment state with the rows of all."""
        return state

    def whole(self, state: dict[str, Tensor], worlds: int) -> dict[str, Tensor]:
        """An environment state with the rows of all worlds, of one with the rows of this process's ``worlds``.

        Raises:
            ValueError: the environment keeps something that is not one row a world.
        """
        return state

    def gather(self, rows: Tensor, dim: int = 0) -> Tensor:
        """Rows of all processes' worlds, in the worlds' order along ``dim``; without a graph."""
        return self.gather_each([rows], dim)[0]

    def gather_each(self, tensors: Sequence[Tensor], dim: int = 0) -> list[Tensor]:
        """As :meth:`gather`, for several tensors in one message; the smallest takes a millisecond on a CPU."""
        return [rows.detach() for rows in tensors]

    def add(self, tensor: Tensor) -> None:
        """Replaces ``tensor`` by its sum over the processes, equal to the last bit on each."""

    def mean(self, rows: Tensor) -> float:
        """Mean of a tensor's elements over all processes; their numbers may differ."""
        return float(rows.mean())

    def total(self, number: float) -> float:
        """Sum of a number over the processes."""
        return number

    def largest(self, number: int) -> int:
        """Largest of the processes' numbers."""
        return number

    def follow(self, tensor: Tensor) -> None:
        """Replaces ``tensor`` by that of rank 0."""

    def meet(self) -> None:
        """Waits for all processes."""


ALONE = Alone()


@dataclass(frozen=True)
class Ranks(Alone):
    """One of ``size`` processes that torchrun started, ``local_size`` of them on this machine.

    Gloo carries their messages on the CPU, NCCL on CUDA, where every process has a device of its own.
    """

    local_rank: int = 0
    local_size: int = 1

    @property
    def leads(self) -> bool:
        return self.rank == 0

    @property
    def speaks(self) -> bool:
        return self.local_rank == 0

    def place(self, device: str) -> str:
        if not device.startswith("cuda"):
            return device
        if not self.local_rank < torch.cuda.device_count():
            raise ValueError(f"device is {device!r} for {self.local_size} processes: expected a CUDA device for each")
        return f"cuda:{self.local_rank}"

    @contextmanager
    def joined(self, device: str) -> Iterator[Ranks]:
        """The same with its device; in the block the processes can meet, and only the leading one prints.

        Raises:
            LostRank: the others did not come.
        """
        backend = "gloo"
        if device.startswith("cuda"):
            backend = "nccl"
            torch.cuda.set_device(device)
        elif self.local_size == self.size:
            # Gloo listens where the host's name leads, which on one machine is too far and often nowhere.
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        with self._meeting():
            dist.init_process_group(backend, rank=self.rank, world_size=self.size, timeout=PATIENCE)
        try:
            with open(os.devnull, "w") as nowhere, redirect_stdout(sys.stdout if self.leads else nowhere):
                yield replace(self, device=device)
        finally:
            # After an exception too: threads of gloo that are left abort the interpreter when it ends.
            dist.destroy_process_group()

    def part(self, rows: int) -> slice:
        return slice(rows * self.rank // self.size, rows * (self.rank + 1) // self.size)

    def share(self, num_envs: int) -> int:
        if num_envs % self.size:
            raise ValueError(f"num_envs is {num_envs}: expected a multiple of the {self.size} processes")
        return num_envs // self.size

    def own(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: rows[self.part(len(rows))] for name, rows in state.items()}

    def whole(self, state: dict[str, Tensor], worlds: int) -> dict[str, Tensor]:
        for name, rows in state.items():
            if rows.shape[:1] != (worlds,):
                raise ValueError(
                    f"the environment keeps {name} of shape {tuple(rows.shape)} for {worlds} worlds: several processes "
                    "need one row a world"
                )
        return dict(zip(state, self.gather_each(list(state.values())), strict=True))

    def gather_each(self, tensors: Sequence[Tensor], dim: int = 0) -> list[Tensor]:
        own = [rows.detach().to(self.device).contiguous().view(-1).view(torch.uint8) for rows in tensors]
        message = torch.cat(own)
        parts = [torch.empty_like(message) for _ in range(self.size)]
        with self._meeting():
            dist.all_gather(parts, message)
        by_tensor = zip(*(part.split([len(rows) for rows in own]) for part in parts), strict=True)
        # Cloned, because a view as another type must begin at a multiple of its size.
        return [
            torch.cat([piece.clone().view(rows.dtype).view(rows.shape) for piece in pieces], dim).to(rows.device)
            for rows, pieces in zip(tensors, by_tensor, strict=True)
        ]

    def add(self, tensor: Tensor) -> None:
        with self._meeting():
            dist.all_reduce(tensor)

    def mean(self, rows: Tensor) -> float:
        pair = torch.stack([rows.sum().double(), torch.tensor(float(rows.numel())).to(rows.device).double()])
        self.add(pair)
        return float(pair[0] / pair[1])

    def total(self, number: float) -> float:
        sums = torch.tensor(number, dtype=torch.float64, device=self.device)
        self.add(sums)
        return float(sums)

    def largest(self, number: int) -> int:
        found = torch.tensor(int(number), device=self.device)
        with self._meeting():
            dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    def follow(self, tensor: Tensor) -> None:
        led = tensor.to(self.device)
        with self._meeting():
            dist.broadcast(led, 0)
        tensor.copy_(led)

    def meet(self) -> None:
        self.largest(0)

    @contextmanager
    def _meeting(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            reason = str(error).partition("\n")[0].partition(". ")[0]
            raise LostRank(f"rank {self.rank} of {self.size} stopped, because another has failed ({reason})") from error


def launched(environment: Mapping[str, str]) -> Alone:
    """Which process this is, by the variables that torchrun sets; :class:`Alone` without them.

    Raises:
        ValueError: some of them are missing, or not numbers that fit.
    """
    missing = [name for name in VARIABLES if name not in environment]
    if "RANK" in missing and "WORLD_SIZE" in missing:
        return Alone()
    if missing:
        raise ValueError(f"RANK or WORLD_SIZE is set and {missing[0]} is not: start several processes by torchrun")
    words = [environment[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")]
    if not all(word.isdecimal() for word in words) or not int(words[0]) < int(words[1]):
        raise ValueError(f"RANK is {words[0]!r} and WORLD_SIZE {words[1]!r}: start several processes by torchrun")
    rank, size, local_rank, local_size = (int(word) for word in words)
    return Ranks(rank, size, local_rank=local_rank, local_size=local_size)
