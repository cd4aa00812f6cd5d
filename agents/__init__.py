"""Bundled agents, run from the checkout: ``python -m agents``.

SHAC (``shac.py``) follows the gradient of a short differentiable rollout; PPO (``ppo.py``) estimates it from
samples. Both run on any torch vector environment with ``reset``, ``step``, ``rollout`` and ``state_dict``.
"""
