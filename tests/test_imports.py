"""The arrows of the tree: who may import whom, read from the source; and house rules on files and words."""

import ast
import fnmatch
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("diffenvs", "agents", "leaderboard", "scripts", "tests")
MAX_LINES = 400
FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "managers", "base", "misc"}
# file -> modules of an extra, imported when they are needed
WHEN_NEEDED = {
    "diffenvs/gradients/figure.py": {"matplotlib"},
    "leaderboard/benchmark/mjx.py": {"jax"},
    "leaderboard/benchmark/newton.py": {"newton"},
}
# the only file outside of the leaderboard that runs a part of it
RUNS_LEADERBOARD = "scripts/benchmark.py"
RUNS_RACE = "scripts/race.py"
# distribution -> module, where they differ
MODULES = {"warp-lang": "warp"}


@dataclass(frozen=True)
class Rule:
    """Files that match `files` (the first rule counts) may import these, and the standard library."""

    files: str
    packages: tuple[str, ...]
    modules: tuple[str, ...]


PURE_TORCH = ("diffenvs.random", "diffenvs.rotation")
TASK = (
    *PURE_TORCH,
    *("diffenvs.start", "diffenvs.parameters", "diffenvs.task", "diffenvs.sim.model", "diffenvs.sim.contact"),
)
RULES = (
    # Warp and NumPy; MuJoCo's parser only where a model is read or written
    Rule("diffenvs/sim/load.py", ("numpy", "mujoco"), ("diffenvs.sim",)),
    Rule("diffenvs/sim/scene.py", ("numpy", "mujoco"), ("diffenvs.sim",)),
    Rule("diffenvs/sim/unsupported.py", ("numpy", "mujoco"), ("diffenvs.sim",)),
    Rule("diffenvs/sim/contact_points.py", ("numpy", "mujoco"), ("diffenvs.sim",)),
    Rule("diffenvs/sim/*", ("numpy", "warp"), ("diffenvs.sim",)),
    # the seam
    Rule("diffenvs/bridge.py", ("warp", "torch"), ("diffenvs.sim", "diffenvs.parameters")),
    Rule("diffenvs/parameters.py", ("torch",), ("diffenvs.sim.model",)),
    # tasks: torch and named facts about the robot
    Rule("diffenvs/random.py", ("torch",), ()),
    Rule("diffenvs/rotation.py", ("torch",), ()),
    Rule(
        "diffenvs/randomization.py",
        ("torch",),
        ("diffenvs.random", "diffenvs.parameters", "diffenvs.sim.model"),
    ),
    Rule("diffenvs/start.py", ("torch",), PURE_TORCH),
    Rule("diffenvs/planar.py", ("torch",), TASK),
    Rule("diffenvs/running.py", ("torch",), TASK),
    Rule("diffenvs/task.py", ("torch",), TASK),
    Rule("diffenvs/envs/*", ("torch",), (*TASK, "diffenvs.planar", "diffenvs.running")),
    # rendering: MuJoCo, no torch
    Rule(
        "diffenvs/render.py",
        ("numpy", "mujoco"),
        ("diffenvs.sim.load", "diffenvs.sim.model", "diffenvs.sim.scene"),
    ),
    # the one picture that the library draws, when asked for
    Rule("diffenvs/gradients/figure.py", ("matplotlib",), ("diffenvs.gradients",)),
    # environments: never Warp, of the simulator only what is said in NumPy
    Rule(
        "diffenvs/*",
        ("gymnasium", "numpy", "torch"),
        (
            *TASK,
            *(
                "diffenvs.sim.load",
                "diffenvs.sim.branches",
                "diffenvs.bridge",
                "diffenvs.parameters",
                "diffenvs.randomization",
                "diffenvs.envs",
                "diffenvs.registry",
            ),
            *(
                "diffenvs.env",
                "diffenvs.rollout",
                "diffenvs.autoreset",
                "diffenvs.transition",
                "diffenvs.snapshot",
            ),
            *("diffenvs.action", "diffenvs.options", "diffenvs.single", "diffenvs.render", "diffenvs.gradients"),
        ),
    ),
    # agents run on any torch vector environment: diffenvs is imported to register its own, for nothing else
    Rule(
        "agents/*",
        ("torch", "numpy", "gymnasium", "safetensors", "tensorboard", "tqdm", "tyro"),
        ("diffenvs", "agents.*"),
    ),
    # the benchmark: one simulator a file, the other simulators nowhere else
    Rule("leaderboard/benchmark/ours.py", ("torch",), ("diffenvs.bridge", "diffenvs.sim.contact", "leaderboard.*")),
    Rule("leaderboard/benchmark/scene.py", ("numpy", "mujoco"), ("diffenvs.registry", "diffenvs.sim")),
    Rule("leaderboard/benchmark/mujoco_c.py", ("numpy", "mujoco"), ("leaderboard.benchmark",)),
    Rule("leaderboard/benchmark/finite_differences.py", ("numpy", "mujoco"), ("leaderboard.benchmark",)),
    Rule("leaderboard/benchmark/mjx.py", ("numpy", "mujoco", "jax"), ("leaderboard.benchmark",)),
    Rule("leaderboard/benchmark/newton.py", ("numpy", "warp", "newton"), ("leaderboard.benchmark",)),
    Rule("leaderboard/benchmark/*", ("matplotlib",), ("agents.*", "leaderboard.*")),
    Rule("leaderboard/environment_facts.py", ("torch",), ("agents.*", "diffenvs.registry", "leaderboard.*")),
    Rule(
        "leaderboard/*",
        ("gymnasium", "matplotlib", "numpy", "scipy", "tyro"),
        ("diffenvs", "diffenvs.*", "agents.*", "leaderboard.*"),
    ),
    Rule(RUNS_LEADERBOARD, ("tyro",), ("leaderboard.benchmark.run",)),
    Rule(RUNS_RACE, ("tyro",), ("leaderboard.benchmark.race",)),
    Rule("scripts/*", ("*",), ("diffenvs", "diffenvs.*", "agents.*")),
    Rule("tests/*", ("*",), ("*",)),
)
OURS = ("diffenvs", "agents", "leaderboard", "scripts", "tests")


def sources(root: Path) -> list[str]:
    """Paths of the Python files, relative to the root."""
    return sorted(path.relative_to(root).as_posix() for folder in FOLDERS for path in (root / folder).rglob("*.py"))


def imports(root: Path, file: str, *, typing: bool = True) -> Iterator[str]:
    """Full names of the modules that a file imports; a name taken from a package is a module if it is one.

    typing: with those under `if TYPE_CHECKING`, which never run.
    """
    tree = ast.parse((root / file).read_text(), file)
    for node in _statements(tree, typing):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = file.removesuffix(".py").removesuffix("/__init__").split("/")
            if not file.endswith("__init__.py"):
                package = package[:-1]
            prefix = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*prefix, *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{module}.{alias.name}"
                yield name if file_of(root, name) else module


def _statements(node: ast.AST, typing: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        guarded = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if typing or not guarded:
            yield child
            yield from _statements(child, typing)


def file_of(root: Path, module: str) -> str | None:
    """The file of one of our modules; None for anything else."""
    stem = module.replace(".", "/")
    for candidate in (f"{stem}.py", f"{stem}/__init__.py"):
        if (root / candidate).is_file():
            return candidate
    return None


def rule_of(file: str) -> Rule:
    """The rule of a file."""
    return next(rule for rule in RULES if fnmatch.fnmatch(file, rule.files))


def violations(root: Path, file: str) -> list[str]:
    """What a file imports against its rule."""
    rule, found = rule_of(file), []
    for module in imports(root, file):
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names:
            continue
        if top in OURS:
            # `diffenvs.sim` allows what is under it; a bare `diffenvs` allows only `import diffenvs`
            allowed = any(
                fnmatch.fnmatch(module, pattern) or ("." in pattern and module.startswith(f"{pattern}."))
                for pattern in rule.modules
            )
        else:
            allowed = any(fnmatch.fnmatch(top, pattern) for pattern in rule.packages)
        if not allowed:
            found.append(f"{file} imports {module}, which {rule.files} may not")
    return found


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """A cycle of the graph; empty when there is none."""
    seen: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in seen:
            return []
        seen.add(node)
        return next((found for other in sorted(graph.get(node, ())) if (found := visit(other, [*path, node]))), [])

    return next((found for start in sorted(graph) if (found := visit(start, []))), [])


def import_graph(root: Path) -> dict[str, set[str]]:
    """File -> our files that it needs when it is run."""
    return {
        file: {target for name in imports(root, file, typing=False) if (target := file_of(root, name))} - {file}
        for file in sources(root)
    }


@pytest.mark.parametrize("file", sources(ROOT))
def test_imports_follow_the_arrows(file):
    assert violations(ROOT, file) == []


def test_only_the_bridge_sees_warp_and_torch():
    both = [file for file in sources(ROOT) if not file.startswith("tests/") and {"warp", "torch"} <= packages(file)]
    assert both in ([], ["diffenvs/bridge.py"])


def test_only_one_file_talks_to_other_processes():
    named = {
        file: [name for name in imports(ROOT, file) if name.startswith("torch.distributed")] for file in sources(ROOT)
    }
    assert [file for file, names in named.items() if names] == ["agents/parallel.py"]


def packages(file: str) -> set[str]:
    """Top names of what a file imports."""
    return {name.partition(".")[0] for name in imports(ROOT, file)}


def test_no_import_runs_in_a_circle():
    assert cycle(import_graph(ROOT)) == []


def test_nothing_imports_tests_scripts_or_leaderboard():
    for file in sources(ROOT):
        folder = file.partition("/")[0]
        if folder not in ("leaderboard", "tests") and file not in (RUNS_LEADERBOARD, RUNS_RACE):
            assert not packages(file) & {"leaderboard", "scripts", "tests"} - {folder}, file


@pytest.mark.parametrize("file", sources(ROOT))
def test_files_are_small_and_named_for_what_they_hold(file):
    lines = len((ROOT / file).read_text().splitlines())
    assert lines <= MAX_LINES, f"{file} has {lines} lines, the ceiling is {MAX_LINES}"
    assert Path(file).stem not in FORBIDDEN_NAMES, f"{file}: name it for what it holds"


def test_no_gradient_is_laundered_and_nothing_is_left_undone():
    words = re.compile("|".join(("nan_to_num", "TODO", "FIXME", "XXX")))
    for file in sources(ROOT):
        if ROOT / file != Path(__file__):
            assert not words.search((ROOT / file).read_text()), file


def test_dependencies_are_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    core = declared(project["dependencies"])
    leaderboard = core | declared(extras["leaderboard"])
    extra = leaderboard | declared(extras["bench"])
    for folder, known in (("diffenvs", core), ("agents", leaderboard), ("leaderboard", leaderboard)):
        for file in sources(ROOT):
            if file.startswith(f"{folder}/"):
                wanted = packages(file) - (WHEN_NEEDED.get(file, set()) & extra)
                unknown = wanted - set(sys.stdlib_module_names) - set(OURS) - known
                assert not unknown, f"{file} imports {unknown}, which pyproject.toml does not declare"


def declared(requirements: list[str]) -> set[str]:
    """Modules that the requirements bring."""
    names = {re.match(r"[A-Za-z0-9_-]+", requirement)[0] for requirement in requirements}
    return {MODULES.get(name, name) for name in names}


def test_constraints_pin_every_requirement():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in lines)
    pinned = {line.partition("==")[0].lower() for line in lines}
    for requirement in wanted:
        name = re.match(r"[A-Za-z0-9_-]+", requirement)[0].lower()
        assert name in pinned or name == "diffenvs", f"constraints.txt does not pin {name}"


def test_the_oldest_warp_allowed_is_the_one_tested():
    """Adjoints of built-ins differ between versions: none is allowed on which the gradients were not checked (A8)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (allowed,) = (line for line in project["dependencies"] if line.startswith("warp-lang"))
    pinned = re.search(r"^warp-lang==([0-9.]+)$", (ROOT / "constraints.txt").read_text(), re.M)[1]
    oldest, below = re.fullmatch(r"warp-lang>=([0-9.]+),<([0-9.]+)", allowed).groups()
    assert pinned.startswith(f"{oldest}.")
    major, minor = (int(x) for x in oldest.split("."))
    assert below == f"{major}.{minor + 1}"


def test_the_rules_can_fail(tmp_path):
    written = {
        "diffenvs/sim/spatial.py": "import torch\n",
        "diffenvs/envs/ant.py": "import warp as wp\n",
        "diffenvs/env.py": "def f():\n    from diffenvs.sim import program\n",
        "diffenvs/sim/program.py": "",
        "diffenvs/sim/__init__.py": "",
        "agents/shac.py": "from diffenvs.env import DiffVecEnv\n",
        "agents/ppo.py": "import diffenvs\n",
        "leaderboard/run.py": "import pandas\n",
    }
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    wrong = {file for file in sources(tmp_path) if violations(tmp_path, file)}
    assert wrong == {
        *("diffenvs/sim/spatial.py", "diffenvs/envs/ant.py", "diffenvs/env.py"),
        *("agents/shac.py", "leaderboard/run.py"),
    }


def test_a_circle_is_found(tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "shac.py").write_text("from agents import ppo\n")
    (tmp_path / "agents" / "ppo.py").write_text("import agents.shac\n")
    assert cycle(import_graph(tmp_path)) == ["agents/ppo.py", "agents/shac.py", "agents/ppo.py"]
    (tmp_path / "agents" / "ppo.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import agents.shac\n"
    )
    assert cycle(import_graph(tmp_path)) == []
