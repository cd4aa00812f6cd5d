"""One file per task. Adding one is that file, a robot in `diffenvs/assets` and a row in
`diffenvs/registry.py`."""
