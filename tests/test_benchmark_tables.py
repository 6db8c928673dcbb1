"""Tables of the documentation: what stands between markers is replaced, from what a run wrote, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = """# Page

By hand.

<!-- table: paths -->

old

<!-- end -->

* A list

  <!-- table: kappas -->
  <!-- end -->

The end.
"""


@pytest.fixture
def tables(monkeypatch):
    """The module; importing its package sets the number of threads of processes that are started later."""
    for name in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR", "NUMBA"):
        monkeypatch.setenv(f"{name}_NUM_THREADS", "1")
    monkeypatch.setenv("VECLIB_MAXIMUM_THREADS", "1")
    from benchmarks import tables

    return tables


def _row(**systems: Any) -> dict[str, Any]:
    verdict = {"ratio": 2.5, "at_least": False, "target": 3.0, "met": False}
    return {"case": "cancer", "loss": "logistic", "n": 569, "p": 30, "sparse": False, **verdict, "systems": systems}


def test_only_what_is_between_markers_changes(tables):
    new = tables.fill(PAGE, {"paths": "| a |\n| --- |", "kappas": "| k |"})
    assert new == PAGE.replace("old", "| a |\n| --- |").replace(
        "kappas -->\n  <!-- end", "kappas -->\n\n  | k |\n\n  <!-- end"
    )
    assert tables.fill(new, {"paths": "| a |\n| --- |", "kappas": "| k |"}) == new
    assert tables.fill(PAGE, {}) == PAGE


@pytest.mark.parametrize(
    "page, names, match",
    [
        (PAGE, ["memory"], "no marker `<!-- table: memory -->`"),
        (PAGE.replace("<!-- end -->\n\n*", "*"), [], "its own `<!-- end -->`"),
        (PAGE.replace("kappas", "paths"), ["paths"], "its own name"),
    ],
)
def test_bad_markers_are_refused(tables, page, names, match):
    with pytest.raises(ValueError, match=match):
        tables.fill(page, dict.fromkeys(names, "x"))


def test_the_page_has_all_markers(tables):
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    filled = tables.fill(page, dict.fromkeys(tables.SOURCES, "a table"))
    assert filled.count("a table\n\n") == len(tables.SOURCES)


def test_a_row_of_paths(tables):
    row = _row(bregpath={"seconds": 0.0123}, glmnet={"seconds": 0.5, "single": True}, celer={"over": 20.0})
    head, _, line = tables.paths({"rows": [row]}).splitlines()
    assert head == "| case | loss | bregpath | glmnet | celer | Libra | best peer / ours | target |"
    assert line == "| breast cancer 569 x 30 | logistic | 0.012 | 0.5' | > 20 | - | 2.50 | 3 (NO) |"


def test_rows_of_cross_validation(tables):
    ours, peer = {"seconds": 0.1, "nnz": 7}, {"over": 40.0}
    part = {"ratio": 400.0, "at_least": True, "target": None, "met": None}
    row = {**_row(), "cv": {**part, "systems": {"bregpath": ours, "adelie": peer}}}
    row["chosen"] = {**part, "systems": {"bregpath": ours}}
    line = tables.cross_validation({"rows": [row]}).splitlines()[2]
    assert line == "| breast cancer 569 x 30 | logistic | 0.1 | > 40 | > 400.00 | - |"
    assert "| 0.1 (7) |" in tables.chosen({"rows": [row]})


def test_results_of_a_quick_run_are_not_written(tables, tmp_path):
    for quick, names in ((True, set()), (False, {"memory"})):
        (tmp_path / "memory.json").write_text(json.dumps({"quick": quick, "rows": []}))
        assert tables.read_tables(tmp_path).keys() == names


def test_parts_without_time_are_named(tmp_path):
    """Time for a part of the first one only; a quick run leaves the documentation alone."""
    page = ROOT / "docs" / "performance.md"
    before = page.read_bytes()
    words = ["--quick", "--parts", "inverse_scale_space,growth", "--minutes", "0.01", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "benchmarks", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "inverse_scale_space: ended after 1 s" in done.stdout
    assert "growth: not begun, no time left" in done.stdout
    assert page.read_bytes() == before
