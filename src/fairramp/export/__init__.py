"""Rules that leave Python: the same rule for other engines, with the same decisions."""
