"""The Python examples of the guides and the README run, in order, one namespace for each file."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PAGES = ["README.md", "docs/index.md"]
PAGES += sorted(str(p.relative_to(ROOT)) for d in ("guide", "extend") for p in (ROOT / "docs" / d).glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    if not (ROOT / page).exists():
        pytest.skip("not in this source tree")
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
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
