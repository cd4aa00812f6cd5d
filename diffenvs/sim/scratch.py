"""Arrays that only the pass that fills them reads: what lies between the inputs and the outputs of a control step."""

from dataclasses import dataclass

from diffenvs.sim.contact.law import ContactLaw
from diffenvs.sim.model import Model
from diffenvs.sim.precision import Precision
from diffenvs.sim.tables import Tables
from diffenvs.sim.workspace import Field, Workspace


@dataclass(frozen=True)
class ScratchFields:
    """What is kept: of the pose after the step; per substep of dynamics, solver (also its adjoint) and state."""

    pose: list[Field]
    dynamics: list[Field]
    adjoined: list[Field]
    solver: list[Field]
    state: list[Field]
    total: list[Field]

    def reals(self, substeps: int) -> int:
        """Scalars of one world in all."""
        pose, dynamics, adjoined, solver, state, total = (
            sum(f.reals for f in fields)
            for fields in (self.pose, self.dynamics, self.adjoined, self.solver, self.state, self.total)
        )
        return 2 * pose + dynamics * (substeps + 1) + adjoined + solver * substeps + 2 * state * (substeps - 1) + total


def scratch_fields(model: Model, law: ContactLaw, tables: Tables, precision: Precision) -> ScratchFields:
    """Fields in the order in which the kernels go through them."""
    p = precision
    real, vec3, vec6, mat33 = p.real, p.vec3, p.vec6, p.mat33
    nl, nv, nc, nlimit, nr = model.nlink, model.nv, model.ncontact, model.nlimit, model.nrow
    npair, nchain = tables.npair, tables.nchain

    def fields(*rows):
        return [Field(*row) for row in rows]

    pose = fields(("origin", vec3, ()), ("rotation", mat33, (nl,)), ("position", vec3, (nl,)))
    motion = [Field(k, vec3, (nl,)) for k in ("omega", "velocity", "alpha", "acceleration")]
    subtree = fields(
        ("subtree_mass", real, (nl,)),
        ("subtree_moment", vec3, (nl,)),
        ("subtree_inertia", vec6, (nl,)),
    )
    wrench = fields(("torque", vec3, (nl,)), ("force", vec3, (nl,)))
    axes = [Field(k, vec3, (nv,)) for k in ("axis_angular", "axis_linear", "momentum_angular", "momentum_linear")]
    result = fields(
        ("point", vec3, (nc,)),
        ("mass_matrix", real, (npair,)),
        ("bias", real, (nv,)),
        ("jacobian", vec3, (nchain,)),
        ("depth", real, (nr,)),
    )
    adjoined = fields(
        ("lower", real, (npair,)),
        ("bias_reduced", real, (nv,)),
        ("reduced", vec3, (nchain,)),
        ("contact_velocity", vec3, (nr,)),
        ("free_velocity", vec3, (nr,)),
        ("delassus", mat33, (nc, nc)),
        ("coupling", vec3, (nlimit, nc)),
        ("stops", real, (nlimit, nlimit)),
        ("scale", real, (nr,)),
        ("relaxation", p.vec2, (nr,)),
        ("raw", vec3, (nr,)),
        ("impulse", vec3, (nr,)),
        ("change", real, (nv,)),
    )
    solver = [*adjoined, *fields(("history", vec3, (max(1, law.sweeps) * nr,)), ("scaled", real, (nv,)))]
    state = fields(("qpos", real, (model.nq,)), ("qvel", real, (nv,)))
    dynamics = [*pose, *motion, *subtree, *wrench, *axes, *result]
    return ScratchFields(pose, dynamics, adjoined, solver, state, fields(("total", vec3, (nr,))))


class Scratch:
    """For up to ``rows`` groups of worlds at a time."""

    def __init__(self, fields: ScratchFields, *, substeps: int, rows: int, precision: Precision, device: str):
        options = {"rows": rows, "precision": precision, "device": device}
        self.dynamics = Workspace(fields.dynamics, slots=substeps, gradient=True, **options)
        self.solver = Workspace(fields.solver, slots=substeps, **options)
        self.solver_bar = Workspace(fields.adjoined, slots=1, **options)
        self.pose = Workspace(fields.pose, slots=1, gradient=True, **options)
        self.between = [Workspace(fields.state, slots=1, gradient=True, **options) for _ in range(substeps - 1)]
        # where the recomputation of a backward pass sums the impulses, which nobody asks for
        self.total = Workspace(fields.total, slots=1, **options).slots[0].total
