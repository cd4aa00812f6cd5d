"""How fast is it? Ours and other simulators on one robot, one step and the same four contacts, timed in turns."""
