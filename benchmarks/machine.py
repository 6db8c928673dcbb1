"""What the figures were measured on."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import THREAD_VARIABLES
from benchmarks.processes import ROOT


def describe_machine() -> dict[str, Any]:
    """Processor, memory, versions, commit; no names of people or computers."""
    import bregpath
    from bregpath._kernels import implementation

    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "bregpath": bregpath.__version__,
        "kernels": implementation(),
        "commit": _commit(),
        "packages": {name: _version(name) for name in ("numpy", "scipy", "scikit-learn")},
        "threads": {name: os.environ.get(name) for name in THREAD_VARIABLES},
        "load_average": os.getloadavg() if hasattr(os, "getloadavg") else None,
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _commit() -> str:
    def git(*words: str) -> str:
        if not shutil.which("git"):
            return ""
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    changed = git("status", "--porcelain", "--untracked-files=no", "src", "cpp")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (" with changes" if changed else "")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def write_json(folder: str, name: str, record: dict[str, Any]) -> Path:
    """Write a record beside the figures."""
    return write_page(folder, name, json.dumps(record, indent=1) + "\n")


def write_page(folder: str, name: str, page: str) -> Path:
    """Write tables, or anything that is text, into a folder of results."""
    file = Path(folder) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page, encoding="utf-8")
    return file
