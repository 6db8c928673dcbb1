"""The Python examples of the guides and the README run, in order, one namespace for each file."""

from __future__ import annotations

import inspect
import pathlib
import re

import pytest

import bregpath

ROOT = pathlib.Path(__file__).parent.parent
PAGES = ["README.md", "docs/index.md"]
PAGES += sorted(str(p.relative_to(ROOT)) for d in ("guide", "extend") for p in (ROOT / "docs" / d).glob("*.md"))
# They show shipped classes and those of tests, or the tables of a study.
WITHOUT_EXAMPLES = {f"docs/{name}.md" for name in ("extend/add_a_flow", "extend/add_a_penalty", "extend/add_a_store")}
WITHOUT_EXAMPLES |= {"docs/guide/real_data.md", "docs/guide/many_problems.md"}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    if not (ROOT / page).exists():
        pytest.skip("not in this source tree")
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == len(re.findall(r"^ *```py", text, re.MULTILINE))  # none is written in another way
    assert blocks or page in WITHOUT_EXAMPLES
    if any("plot(" in block[1] for block in blocks):
        pytest.importorskip("matplotlib").use("Agg")
    for module in ("pandas", "narwhals"):
        if any("pandas" in block[1] for block in blocks):
            pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)  # what an example writes is left there
    namespace: dict[str, object] = {"__name__": "example"}
    for block in blocks:
        # As many empty lines before it that a traceback shows the line of the page.
        source = "\n" * text[: block.start(1)].count("\n") + block[1]
        exec(compile(source, str(ROOT / page), "exec"), namespace)
    if any("plot(" in block[1] for block in blocks):
        import matplotlib.pyplot as plt

        plt.close("all")


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs")])
def test_included_files_exist(page):
    for name in re.findall(r"{literalinclude} (\S+)", (ROOT / page).read_text(encoding="utf-8")):
        assert (ROOT / page).parent.joinpath(name).exists()


def public_names():
    """All classes and functions that a user is meant to call, by their full names."""
    for module in (bregpath, *(getattr(bregpath, name) for name in bregpath._MODULES)):
        for name in module.__all__:
            thing = getattr(module, name)
            if (inspect.isclass(thing) and not inspect.isabstract(thing)) or inspect.isfunction(thing):
                yield f"{module.__name__}.{name}", thing


def test_every_public_name_has_a_docstring_with_an_example():
    names = dict(public_names())
    assert len(names) > 60
    assert [name for name, thing in names.items() if not thing.__doc__] == []
    assert [name for name, thing in names.items() if "\n    >>> " not in thing.__doc__] == []
