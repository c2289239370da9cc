"""From a dataset to validated pairs, and from pairs to interventions."""
