"""Experiments of the paper as one command each: `python -m leaderboard run contact-models --preset quick`."""
