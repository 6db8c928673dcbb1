"""Benchmarks of bregpath against its peers; see benchmarks/README.md.

Importing this package limits the numerical libraries of this process, and of those it starts, to one thread. That
must happen before NumPy is imported, which is why it happens here.
"""

from __future__ import annotations

import os

THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

for _variable in THREAD_VARIABLES:
    os.environ[_variable] = "1"
