"""README and CONTRIBUTING say what is: their code and commands are run, their tables are generated."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import diffenvs
from leaderboard.documents import BLOCKS, refreshed

ROOT = Path(__file__).parent.parent
DOCUMENTS = ("README.md", "CONTRIBUTING.md")

INSTALL_LEADERBOARD = 'python -m pip install -c constraints.txt -e ".[leaderboard]"'
INSTALL_BENCH = 'python -m pip install -c constraints.txt -e ".[bench]"'
INSTALL_TEST = 'python -m pip install -c constraints.txt -e ".[test]"'
TEST = "python -m pytest -n auto --dist loadfile"
RUN = "python -m leaderboard run contact-models"
BENCHMARK = "python scripts/benchmark.py"
# command in a document -> the form in which .ci/run runs it
IN_CI = {
    f"{INSTALL_LEADERBOARD} && {RUN} --preset quick": f"({INSTALL_LEADERBOARD} && {RUN} --preset smoke)",
    f"{INSTALL_BENCH} && {BENCHMARK} --preset quick": f"({INSTALL_BENCH} && {BENCHMARK} --preset smoke)",
    f"{INSTALL_TEST} && {TEST}": f"({INSTALL_TEST} && {TEST})",
    "ruff check": "ruff check",
    "ruff format --check": "ruff format --check",
    "bash .ci/run": "#!/usr/bin/env bash",  # the script itself
}
# command in a document -> the test file that runs it, on a copy or on results of its own
IN_TESTS = {
    "python -m leaderboard readme": ("tests/leaderboard/test_main.py", '"readme"'),
    "python -m leaderboard table contact-models --preset quick": (
        "tests/leaderboard/test_main.py",
        '"table", "contact-models"',
    ),
}
# command in a document -> what is added so that test_training_commands runs it in seconds, in order
SMALL = ("--iterations", "2", "--num-envs", "4")
HERE = {
    "python -m agents shac DiffQuadruped-v0 --contact smoothed --seed 0 --out runs/a": SMALL,
    "python -m agents evaluate runs/a --contact hard --episodes 100": ("--episodes", "2"),
    "python -m agents shac DiffAnymal-v0 --contact smoothed --seed 0 --out runs/b": SMALL,
    "python -m agents ppo DiffQuadruped-v0 --contact smoothed --seed 0 --out runs/c": SMALL,
    "python -m agents shac DiffQuadruped-v0 --contact smoothed --seed 0 --out runs/a --resume": SMALL,
    "torchrun --standalone --nproc-per-node=2 -m agents shac DiffQuadruped-v0 --out runs/d": SMALL,
    "python scripts/check_gradients.py DiffQuadruped-v0 --contact hard soft smoothed --out runs/gradients": (
        *("--horizon", "2", "--worlds", "2", "--directions", "1"),
    ),
    "python scripts/race.py --out runs/race": (
        *("--agents", "shac", "--seeds", "0", "--goal.iterations", "1", "--goal.episodes", "1"),
    ),
}
# first word of a command -> how the tests run it with their own interpreter
PROGRAMS = {"python": (sys.executable,), "torchrun": (sys.executable, "-m", "torch.distributed.run")}


def blocks(language: str) -> list[str]:
    """Fenced blocks of that language in all documents, in order."""
    texts = [(ROOT / name).read_text() for name in DOCUMENTS]
    return [block for text in texts for block in re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)]


def commands() -> list[str]:
    """Lines of the shell blocks."""
    return [line for block in blocks("bash") for line in block.splitlines() if line.strip()]


def test_every_shell_line_is_run_somewhere():
    known = {*IN_CI, *IN_TESTS, *HERE}
    assert set(commands()) == known, "a command nobody runs, or one run for no document"


def test_ci_runs_the_commands():
    script = (ROOT / ".ci" / "run").read_text()
    for form in IN_CI.values():
        assert form in script


def test_the_tests_run_the_commands():
    for command, (file, words) in IN_TESTS.items():
        assert words in (ROOT / file).read_text(), f"{file} does not run {command}"


@pytest.mark.slow
def test_training_commands(tmp_path):
    written = [command for command in commands() if command in HERE]
    for command in written:
        parts = shlex.split(command)
        arguments = [str(tmp_path / part) if part.startswith("runs/") else part for part in parts[1:]]
        done = subprocess.run(
            [*PROGRAMS[parts[0]], *arguments, *HERE[command]],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "runs/a/evaluate-hard.json").is_file()


@pytest.mark.parametrize("source", blocks("python"))
def test_python_blocks_run(source, capsys):
    names = {}
    exec(compile(source, "README.md", "exec"), names)
    # the one block there is differentiates a rollout and prints the gradient's norm
    printed = float(re.search(r"tensor\((.*)\)", capsys.readouterr().out)[1])
    assert 0.0 < printed < float("inf")
    assert names["actor"][0].weight.grad.isfinite().all()


def test_python_is_shown_on_the_first_screen():
    assert len(blocks("python")) == 1
    assert (ROOT / "README.md").read_text().splitlines().index("```python") < 15


def test_generated_tables_are_up_to_date():
    text = (ROOT / "README.md").read_text()
    assert refreshed(text) == text, "run: python -m leaderboard readme"


def test_a_stale_table_is_noticed():
    text = (ROOT / "README.md").read_text()
    stale = text.replace("<!-- environments -->\n", "<!-- environments -->\nan environment of yesterday\n")
    assert stale != text
    assert refreshed(stale) == text
    for name in BLOCKS:
        with pytest.raises(ValueError, match=name):
            refreshed(text.replace(f"<!-- /{name} -->", ""))


def test_contact_laws_are_shown_with_their_defaults():
    text = (ROOT / "README.md").read_text()
    shown = re.findall(r"^\| `((?:Hard|Soft|Smoothed)\(.*?\))` \|", text, re.M)
    laws = [eval(expression, dict(vars(diffenvs))) for expression in shown]
    assert set(laws) == {law() for law in diffenvs.CONTACT.values()}
    assert len(laws) == len(diffenvs.CONTACT)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_files_named_exist(name):
    text = (ROOT / name).read_text()
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    # paths in backticks: those with a slash or an ending; not options, not what a run writes
    quoted = [
        path
        for path in re.findall(r"`([\w./-]+(?:/[\w.-]+|\.(?:py|md|txt|toml)))`", text)
        if not path.startswith("runs/")
    ]
    folders = ("", "diffenvs")
    for path in [*links, *quoted]:
        assert any((ROOT / folder / path).exists() for folder in folders), f"{name} names {path}, which is not there"
