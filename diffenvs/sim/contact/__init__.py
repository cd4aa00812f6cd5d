"""Contact laws: one file each, values that a simulation is given."""

from diffenvs.sim.contact.hard import Hard
from diffenvs.sim.contact.law import ContactLaw
from diffenvs.sim.contact.smoothed import Smoothed
from diffenvs.sim.contact.soft import Soft

CONTACT = {law.name: law for law in (Hard, Soft, Smoothed)}

__all__ = ["CONTACT", "ContactLaw", "Hard", "Smoothed", "Soft", "resolve"]


def resolve(contact) -> ContactLaw:
    """The law meant by a name of ``CONTACT`` (with its defaults) or by a law value.

    Raises ValueError for anything else.
    """
    if isinstance(contact, tuple(CONTACT.values())):
        return contact
    if isinstance(contact, str) and contact in CONTACT:
        return CONTACT[contact]()
    allowed = ", ".join(repr(name) for name in CONTACT)
    raise ValueError(f"contact is {contact!r}, expected one of {allowed}, or a value such as Smoothed(kappa=300.0).")
