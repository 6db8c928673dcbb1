"""`import bregpath` costs NumPy only."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("sklearn", "matplotlib", "scipy", "pandas", "polars", "narwhals", "rich", "plotly", "networkx")


def modules_after(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds after running ``code``."""
    script = f"import sys; {code}; print(' '.join({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_import_is_light() -> None:
    loaded = modules_after("import bregpath; bregpath.__version__; dir(bregpath)")
    assert "bregpath" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_a_path_needs_neither_sklearn_nor_plots() -> None:
    code = (
        "import bregpath; data = bregpath.datasets.make_linear(30, 5, 2, seed=0); "
        "path = bregpath.trace_path(data.X, data.y); repr(path)"
    )
    assert modules_after(code).isdisjoint(set(HEAVY) - {"scipy"})


def test_every_public_name_exists() -> None:
    import bregpath

    for name in bregpath.__all__:
        if name == "plots":
            pytest.importorskip("matplotlib")
        assert getattr(bregpath, name) is not None
    assert set(bregpath.__all__) <= set(dir(bregpath))
    with pytest.raises(AttributeError, match="no attribute 'trace_pth'"):
        bregpath.trace_pth  # noqa: B018
