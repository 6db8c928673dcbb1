"""What is guaranteed of a path: diagnosis of simulations, assessment of models chosen on real data."""

from __future__ import annotations

from .assessment import Assessment, assess
from .diagnosis import Diagnosis, diagnose
from .guarantee import Guarantee
from .oracle import OracleDynamics
from .report import Condition, Finding
from .signs import sign_intervals

__all__ = [
    "Assessment",
    "Condition",
    "Diagnosis",
    "Finding",
    "Guarantee",
    "OracleDynamics",
    "assess",
    "diagnose",
    "sign_intervals",
]
