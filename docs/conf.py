"""Sphinx: ``make docs``, or ``sphinx-build -W docs docs/_build/html`` with bregpath importable."""

from __future__ import annotations

import bregpath

project = "bregpath"
author = "The bregpath developers"
copyright = "The bregpath developers, BSD-3-Clause"
release = version = bregpath.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "README.md"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say it in words
autodoc_default_options = {"members": True, "member-order": "bysource"}
default_role = "autolink"
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"bregpath {version}"


def skip_inherited(app, what, name, obj, skip, options):
    """Members that scikit-learn brings along are described there, with links that lead nowhere from here."""
    return True if (getattr(obj, "__module__", None) or "").startswith("sklearn") else None


def setup(app):
    app.connect("autodoc-skip-member", skip_inherited)
