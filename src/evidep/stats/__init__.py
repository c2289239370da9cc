"""Statistics of evidence dependence: pure functions of arrays (numpy and scipy only)."""
