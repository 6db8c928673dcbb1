"""Install the peers where possible: ``python -m benchmarks.install``. What fails is named and skipped.

R's glmnet and glasso, and data sets, come from Debian (as root only). The Python peers get an environment of their own,
.venv-peers, because adelie needs an older NumPy than bregpath.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from benchmarks.processes import ROOT, command_of, rscript_with

# R packages, by the name of Debian's: peers, and data sets of benchmarks.many_problems.
R_PEERS = {"r-cran-glmnet": "glmnet", "r-cran-glasso": "glasso"}
R_DATA = {f"r-cran-{name.lower()}": name for name in ("caret", "kernlab", "MASS", "mlbench", "modeldata", "pls")}
R_DATA["r-bioc-multtest"] = "multtest"
PYTHON_PEERS = ("adelie", "celer", "skglm", "abess")


def run(*command: str) -> bool:
    """Run quietly; the last line of an error is shown."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        words = done.stderr.strip().splitlines()
        print(f"failed: {' '.join(command[:4])} ...: {words[-1] if words else done.returncode}")
    return done.returncode == 0


def install_r_packages(wanted: dict[str, str]) -> None:
    """Debian's packages, when this is root on such a system."""
    packages = [package for package, name in wanted.items() if not rscript_with(name)]
    if not packages:
        return
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f"not installed (apt-get as root does it): {', '.join(packages)}")
        return
    install = ("apt-get", "install", "-y", "--no-install-recommends", "r-base-core", *packages)
    if not run(*install):
        run("apt-get", "update")
        run(*install)


def install_python_peers() -> None:
    """All together, so that pip finds versions that agree; else one by one."""
    folder = ROOT / ".venv-peers"
    python = str(folder / "bin" / "python")
    missing = [name for name in PYTHON_PEERS if not command_of(name)]
    if not missing:
        return
    if not os.path.exists(python) and not run(sys.executable, "-m", "venv", str(folder)):
        return
    pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--prefer-binary")
    if not run(*pip, *PYTHON_PEERS):
        for name in missing:
            run(*pip, name)


def main() -> None:
    install_r_packages(R_PEERS)
    install_r_packages(R_DATA)
    install_python_peers()
    for name in ("glmnet", *PYTHON_PEERS, "sklearn"):
        print(f"{name}: {'ready' if command_of(name) else 'not available'}")


if __name__ == "__main__":
    main()
