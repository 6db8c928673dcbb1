"""Flows: the dynamics, the one loop over time, and when it stops."""
