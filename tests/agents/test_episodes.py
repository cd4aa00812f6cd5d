"""Returns of finished episodes, written out."""

import torch

from agents.episodes import EpisodeStatistics, Window


def window(rewards, terminated=(), truncated=()):
    rewards = torch.tensor(rewards, dtype=torch.float64)
    flags = {"terminated": torch.zeros_like(rewards, dtype=torch.bool)}
    flags["truncated"], flags["nonfinite"] = flags["terminated"].clone(), flags["terminated"].clone()
    for name, ends in (("terminated", terminated), ("truncated", truncated)):
        for t, world in ends:
            flags[name][t, world] = True
    return Window(rewards, metrics={}, **flags)


def statistics(partial=False):
    return EpisodeStatistics(2, partial=partial, dtype=torch.float64, device=torch.device("cpu"))


def test_returns_run_over_windows():
    episodes = statistics()
    episodes.update(window([[1.0, 10.0], [2.0, 20.0]]))
    assert episodes.means() == (None, None)
    episodes.update(window([[3.0, 30.0], [4.0, 40.0]], terminated=[(0, 0)]))
    assert episodes.means() == (6.0, 3.0)  # world 0: 1 + 2 + 3 in 3 steps
    episodes.update(window([[5.0, 50.0]], truncated=[(0, 0), (0, 1)]))
    assert episodes.means() == ((9.0 + 150.0) / 2, (2 + 5) / 2)  # world 0 again: 4 + 5


def test_an_episode_entered_midway_is_not_counted():
    episodes = statistics(partial=True)
    episodes.update(window([[1.0, 1.0], [2.0, 1.0]], truncated=[(0, 0)]))
    assert episodes.means() == (None, None)
    episodes.update(window([[3.0, 1.0]], truncated=[(0, 0)]))
    assert episodes.means() == (5.0, 2.0)


def test_state_continues():
    first, second = statistics(), statistics()
    first.update(window([[1.0, 10.0], [2.0, 20.0]], terminated=[(0, 1)]))
    second.load_state_dict({name: tensor.clone() for name, tensor in first.state_dict().items()})
    for episodes in (first, second):
        episodes.update(window([[3.0, 30.0]], truncated=[(0, 0), (0, 1)]))
    assert first.means() == second.means() == ((6.0 + 50.0) / 2, (3 + 2) / 2)
