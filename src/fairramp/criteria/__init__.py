"""What fair means, and the thresholds that follow from it."""
