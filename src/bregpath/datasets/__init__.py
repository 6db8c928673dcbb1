"""Data with known truth: simulators of the sparse models that the paths are meant to recover."""

from __future__ import annotations

from .simulate import Simulation, make_linear, make_logistic, make_multinomial, make_poisson

__all__ = ["Simulation", "make_linear", "make_logistic", "make_multinomial", "make_poisson"]
