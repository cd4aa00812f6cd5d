import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

import diffenvs
from diffenvs import registry


def test_every_row_is_registered():
    for row in diffenvs.ENVS:
        spec = gym.spec(row.id)
        assert spec.max_episode_steps == row.max_episode_steps == row.task.max_episode_steps
        assert spec.entry_point == "diffenvs.single:SingleEnv"
        assert spec.vector_entry_point == "diffenvs.env:DiffVecEnv"
        assert row.summary


def test_registering_twice_is_harmless():
    before = dict(gym.registry)
    registry.register()
    assert gym.registry == before


def test_an_unknown_id_is_answered_with_the_known_ones():
    assert registry.find("DiffAnymal-v0").id == "DiffAnymal-v0"
    with pytest.raises(ValueError, match=r"there is no environment 'DiffAnymal-v9'; there are .*DiffAnymal-v0"):
        registry.find("DiffAnymal-v9")


def test_robots_are_found_by_name_by_path_and_as_text(tmp_path):
    text = diffenvs.load_model(registry.locate("quadruped.xml")).xml
    assert registry.locate(text) == text
    own = tmp_path / "robot.xml"
    own.write_text(text)
    assert diffenvs.load_model(registry.locate(str(own))).nq == 19


def test_specs_make_the_same_environment_again(env_id):
    env = gym.make(env_id, contact="hard", config={"timestep": 0.004})
    spec = EnvSpec.from_json(env.spec.to_json())
    again = gym.make(spec)
    assert again.unwrapped.worlds.contact == diffenvs.Hard()
    assert again.unwrapped.worlds.task.config == env.unwrapped.worlds.task.config
    assert np.array_equal(env.reset(seed=1)[0], again.reset(seed=1)[0])
    envs = gym.make_vec(env_id, num_envs=3, contact="soft", threads=1)
    assert gym.make_vec(envs.spec).unwrapped.contact == diffenvs.Soft()
    assert gym.make_vec(envs.spec).num_envs == 3


def test_gymnasium_can_import_the_package_by_itself():
    code = "import gymnasium; print(gymnasium.make('diffenvs:DiffAnymal-v0').reset(seed=0)[0].shape)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("(49,)")
