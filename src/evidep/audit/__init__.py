"""The audit: plan, cells, packet."""
