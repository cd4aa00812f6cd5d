"""Checkpoints: all tensors in ``checkpoint.safetensors``, a readable card in ``checkpoint.json``.

The card is also written into the header of the tensor file. That one file is replaced in one step and is the
truth; the JSON beside it is a copy for people, so a kill between the two leaves nothing inconsistent, only a
copy that the next load brings up to date.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from agents import atomic

TENSORS = "checkpoint.safetensors"
CARD = "checkpoint.json"
FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """A card of plain JSON values and a nested dictionary of tensors."""

    card: dict
    tensors: dict


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Writes both files; whatever moment the process dies at, a complete checkpoint stays."""
    card = json.dumps({"format": FORMAT, **checkpoint.card}, indent=2)
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in leaves(checkpoint.tensors)}
    atomic.replace(directory / TENSORS, lambda path: save_file(tensors, path, metadata={"card": card}))
    atomic.replace_text(directory / CARD, card)


def load(directory: Path, *, mend: bool = True) -> Checkpoint:
    """Reads a run folder's checkpoint.

    Args:
        mend: bring the copy for people up to date; one process of a training does.

    Raises:
        FileNotFoundError: no checkpoint there.
        ValueError: the file is damaged or of another format.
    """
    path = directory / TENSORS
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {})["card"]
            tree: dict = {}
            for name in file.keys():  # noqa: SIM118 (not a dictionary)
                *branches, leaf = name.split("/")
                node = tree
                for branch in branches:
                    node = node.setdefault(branch, {})
                node[leaf] = file.get_tensor(name)
    except (SafetensorError, KeyError) as error:
        raise ValueError(f"{path} is not a checkpoint of these agents ({error})") from error
    card = json.loads(text)
    if card["format"] != FORMAT:
        raise ValueError(f"{path} has checkpoint format {card['format']}: this version reads {FORMAT}")
    copy = directory / CARD
    if mend and (not copy.is_file() or copy.read_text(encoding="utf-8") != text):
        atomic.replace_text(copy, text)
    return Checkpoint(card, tree)


def require_same(path: Path, card: dict, **expected: object) -> None:
    """Refuses a checkpoint whose card differs.

    Raises:
        ValueError: one sentence naming the first difference.
    """
    for name, value in expected.items():
        if card[name] != value:
            raise ValueError(f"the checkpoint in {path} has {name} {card[name]!r}, not {value!r}")


def leaves(tree: dict, prefix: str = "") -> list[tuple[str, Tensor]]:
    """Tensors of nested dictionaries with their names, levels separated by slashes."""
    found: list[tuple[str, Tensor]] = []
    for name, value in tree.items():
        if "/" in name:
            raise ValueError(f"tensor name {name!r} contains '/', which separates the levels of a checkpoint")
        if isinstance(value, dict):
            found += leaves(value, f"{prefix}{name}/")
        else:
            found.append((prefix + name, value))
    return found
