"""The simulator: Warp and NumPy only. It knows nothing of torch, Gymnasium or rewards."""
