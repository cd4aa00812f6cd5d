"""Index tables that follow from a model's tree: the packed mass matrix and the paths to the root.

A *row* is one constraint of the solve: the contacts, then the joint limits.
"""

from dataclasses import dataclass

import numpy as np

from diffenvs.sim.model import Joint, Model


@dataclass(frozen=True)
class Topology:
    """Integer tables (int32), read by kernels.

    start (nv + 1,): first entry of each row of the packed mass matrix; row, column (npair,): its dofs.
    chain_start (nrow + 1,): first entry of each row's path to the root; chain_dof, chain_row: dof and row of an entry.
    common (nrow, nrow): number of dofs that two paths share; they are the last ones of both.
    dof_qpos (nv,): index into qpos of a hinge or slide dof, -1 for free and ball joints.
    """

    start: np.ndarray
    row: np.ndarray
    column: np.ndarray
    chain_start: np.ndarray
    chain_dof: np.ndarray
    chain_row: np.ndarray
    common: np.ndarray
    dof_qpos: np.ndarray


def build_topology(model: Model) -> Topology:
    """The tables of ``model``."""

    def path(dof: int) -> list[int]:
        dofs = []
        while dof >= 0:
            dofs.append(dof)
            dof = int(model.dof_parent[dof])
        return dofs

    rows = [path(d) for d in range(model.nv)]
    # the last dof of a contact's link begins its path to the root
    last_dof = {int(link): d for d, link in enumerate(model.dof_link)}
    ends = [*(last_dof[int(link)] for link in model.contact_link), *(int(d) for d in model.limit_dof)]
    chains = [path(d) for d in ends]
    scalar = (Joint.SLIDE, Joint.HINGE)
    qpos_of = [int(model.link_qpos[link]) if int(model.link_joint[link]) in scalar else -1 for link in model.dof_link]

    def offsets(lists):
        return np.cumsum([0] + [len(x) for x in lists], dtype=np.int32)

    def flat(values):
        return np.array(list(values), dtype=np.int32)

    return Topology(
        start=offsets(rows),
        row=flat(d for d, r in enumerate(rows) for _ in r),
        column=flat(c for r in rows for c in r),
        chain_start=offsets(chains),
        chain_dof=flat(d for c in chains for d in c),
        chain_row=flat(i for i, c in enumerate(chains) for _ in c),
        common=flat(len(set(a) & set(b)) for a in chains for b in chains).reshape(len(chains), len(chains)),
        dof_qpos=flat(qpos_of),
    )
