"""diffenvs itself: through the bridge, as training uses it, and the bare launches below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from diffenvs.bridge import Simulator
from diffenvs.sim.contact import CONTACT
from leaderboard.benchmark.contestant import Course, Prepared
from leaderboard.benchmark.scene import Scene, window
from leaderboard.benchmark.standing import Evidence, require_standing


@dataclass(frozen=True)
class Ours:
    """One contact law."""

    law: str
    worlds: int
    threads: int
    peer: ClassVar[str] = "ours"
    precision: ClassVar[str] = "float32"

    @property
    def label(self) -> str:
        return self.law

    def prepare(self, scene: Scene) -> Prepared:
        """Four courses: forward and forward + backward, through torch and as bare launches."""
        qpos, qvel, load = self._settle(scene)
        simulator = self._simulator(scene, self.worlds, self.threads)
        steps = window(self.worlds)
        targets = torch.tensor(scene.targets(self.worlds, steps), dtype=torch.float32).transpose(0, 1).contiguous()
        drive = _Window(simulator, qpos.repeat(self.worlds, 1), qvel.repeat(self.worlds, 1), targets)
        contacts, height, finite = drive.watch()
        evidence = Evidence(load, contacts, height / float(scene.model.home[2]), simulator.substeps, finite)
        require_standing(evidence)
        work = self.worlds * steps
        return Prepared(
            (
                Course("forward", drive.forward, work),
                Course("forward + backward", drive.forward_backward, work),
                Course("forward, bare launches", drive.bare_forward, work, bare=True),
                Course("forward + backward, bare launches", drive.bare_forward_backward, work, bare=True),
            ),
            evidence,
        )

    def _simulator(self, scene: Scene, worlds: int, threads: int) -> Simulator:
        law = CONTACT[self.law]()
        step = scene.timestep
        return Simulator(scene.model, law, worlds, control_timestep=step, timestep=step, threads=threads)

    @torch.no_grad()
    def _settle(self, scene: Scene) -> tuple[torch.Tensor, torch.Tensor, float]:
        """qpos (1, nq), qvel (1, nv) of the standing robot, and the load of its feet over m g."""
        simulator = self._simulator(scene, 1, 1)
        parameters = simulator.default_parameters()
        qpos = torch.tensor(scene.model.home, dtype=torch.float32)[None]
        qvel = torch.zeros(1, scene.model.nv)
        control = torch.tensor(scene.home_targets, dtype=torch.float32)[None]
        forces = []
        for _ in range(scene.settle_steps):
            motion = simulator.simulate(qpos, qvel, control, parameters)
            qpos, qvel = motion.qpos, motion.qvel
            forces.append(float(simulator.contact_impulses()[0, :, 2].sum()) / scene.timestep)
        return qpos, qvel, sum(forces[-scene.load_steps :]) / scene.load_steps / scene.weight


class _Window:
    """A rollout from one state under given targets (T, N, nu)."""

    def __init__(self, simulator: Simulator, qpos: torch.Tensor, qvel: torch.Tensor, targets: torch.Tensor):
        self._simulator, self._qpos, self._qvel = simulator, qpos, qvel
        self._parameters = simulator.default_parameters()
        self._targets = targets.requires_grad_()
        program = simulator.program
        for seed in (program.outputs_bar.qpos, program.outputs_bar.qvel):
            seed.fill_(1.0)

    @torch.no_grad()
    def forward(self) -> None:
        """Values alone."""
        self._roll()

    def forward_backward(self) -> None:
        """Values, then the gradient of the last state to every target."""
        self._targets.grad = None
        qpos, qvel = self._roll()
        (qpos.sum() + qvel.sum()).backward()

    def bare_forward(self) -> None:
        """As many steps, the last one over and over, without torch."""
        for _ in self._targets:
            self._simulator.program.forward()

    def bare_forward_backward(self) -> None:
        """The same, each with its backward pass, which recomputes the step as it does under torch."""
        for _ in self._targets:
            self._simulator.program.forward()
            self._simulator.program.backward(parameters=False)

    def watch(self) -> tuple[tuple[int, int], float, bool]:
        """Fewest and most feet that touch, lowest base [m], whether states and gradients are finite."""
        qpos, qvel, touching, heights, finite = self._qpos, self._qvel, [], [], True
        with torch.no_grad():
            for control in self._targets:
                motion = self._simulator.simulate(qpos, qvel, control, self._parameters)
                qpos, qvel = motion.qpos, motion.qvel
                touching.append((self._simulator.contact_impulses()[..., 2] > 0.0).sum(-1))
                heights.append(qpos[:, 2].min())
                finite = finite and bool(motion.finite.all())
        count = torch.stack(touching)
        self.forward_backward()
        finite = finite and self._simulator.nonfinite_gradients == 0 and bool(self._targets.grad.isfinite().all())
        return (int(count.min()), int(count.max())), float(torch.stack(heights).min()), finite

    def _roll(self) -> tuple[torch.Tensor, torch.Tensor]:
        qpos, qvel = self._qpos, self._qvel
        for control in self._targets:
            motion = self._simulator.simulate(qpos, qvel, control, self._parameters)
            qpos, qvel = motion.qpos, motion.qvel
        return qpos, qvel
