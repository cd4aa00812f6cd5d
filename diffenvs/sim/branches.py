"""On which side of its kinks a simulation step was, so that two runs can be told to have taken the same branches.

A contact law has kinks where a foot touches or a joint meets its limit, where friction clips, in every sweep of a
solver, and where a damper lets go; an actuator has them at its limit. A difference across one of them is no derivative.
"""

import numpy as np

from diffenvs.sim.program import Program
from diffenvs.sim.topology import build_topology

# A clipped impulse is on the cone to within rounding; one that sticks is inside of it.
_ON_THE_CONE = 1.0 - 1e-9


class Branches:
    """Reads them off a program of one substep and one lane a world, after ``forward``. Raises ValueError for others."""

    def __init__(self, program: Program):
        if program.substeps != 1:
            raise ValueError(f"branches are read substep by substep, but the program takes {program.substeps} at once.")
        if program.precision.lanes != 1:
            raise ValueError(
                f"branches are read world by world, but the program's precision is {program.precision.name}."
            )
        self._program = program
        model = program.model
        self._dof = model.actuator_dof
        scalar = build_topology(model).dof_qpos
        self._qpos, self._limit_qpos = scalar[model.actuator_dof], scalar[model.limit_dof]

    def read(self) -> dict[str, np.ndarray]:
        """Booleans (N, any number) by kind of kink.

        "touch": contacts and joint limits that take part or carry load, and limits that take part at their high end.
        "slip": contacts on the friction cone. "sweep": load and cone in the intermediate sweeps of a solver. "turn":
        contacts and limits that separate, whose damper is off (laws of force only). "limit": actuators beyond either
        end of their range.
        """
        p = self._program
        y = p.scratch.solver.slots[0]
        friction, nc = p.inputs.friction.numpy(), p.model.ncontact
        impulse, active = y.impulse.numpy(), y.scale.numpy() > 0.0
        load, slip = _cone(impulse, friction)
        # the first sweep starts from a guess that no cone has clipped yet
        sweeps = max(1, p.law.sweeps)
        history = y.history.numpy().reshape(p.worlds, sweeps, p.model.nrow, 3)[:, 1:]
        inner = np.stack(_cone(history, friction)) & active[None, :, None, :]
        turn = (y.contact_velocity.numpy()[..., 2] < 0.0) & load & (not p.law.needs_delassus)
        return {
            "touch": np.concatenate((active, load, active[:, nc:] & self._high_ends()), 1),
            "slip": slip[:, :nc],
            "sweep": np.moveaxis(inner, 1, 0).reshape(p.worlds, -1),
            "turn": turn,
            "limit": self._limits(),
        }

    def depth(self) -> np.ndarray:
        """Penetration (N, nc) [m] of the contacts at mid-step."""
        return self._program.equations()[3][:, : self._program.model.ncontact]

    def _high_ends(self) -> np.ndarray:
        """Whether limited joints are nearer to the high end of their range, (N, nlimit)."""
        p, dof = self._program, self._program.model.limit_dof
        middle = p.model.dof_range[dof].sum(1) / 2.0
        return p.inputs.qpos.numpy()[:, self._limit_qpos] + 0.5 * p.timestep * p.inputs.qvel.numpy()[:, dof] > middle

    def _limits(self) -> np.ndarray:
        p, model = self._program, self._program.model
        speed, control = p.inputs.qvel.numpy()[:, self._dof], p.inputs.control.numpy()
        # as the dynamics have it: position at mid-step, velocity at the step's start
        error = control - p.inputs.qpos.numpy()[:, self._qpos] - 0.5 * p.timestep * speed
        effort = model.actuator_gain * control + p.inputs.kp.numpy() * error - p.inputs.kd.numpy() * speed
        return np.concatenate((effort > model.actuator_limit, effort < -model.actuator_limit), 1)


def _cone(impulse: np.ndarray, friction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether impulses (N, ..., 3) press, and whether they are on the cone, (N, ...) each."""
    normal = impulse[..., 2]
    bound = friction.reshape(-1, *[1] * (normal.ndim - 1)) * normal
    press = normal > 0.0
    return press, press & (np.hypot(impulse[..., 0], impulse[..., 1]) >= _ON_THE_CONE * bound)
