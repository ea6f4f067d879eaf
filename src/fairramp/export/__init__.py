"""Rules that run where the model runs, with the same answers."""
