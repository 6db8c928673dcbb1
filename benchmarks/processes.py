"""Workers seen from outside: where a peer runs, starting it, asking it with a time limit."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from benchmarks.peers import OURS, PEERS

ROOT = Path(__file__).resolve().parents[1]
START_LIMIT = 120.0  # loading data and compiling, seconds


def peers_python() -> str | None:
    """The interpreter of the peers' environment, if there is one."""
    chosen = os.environ.get("BREGPATH_PEERS_PYTHON", str(ROOT / ".venv-peers" / "bin" / "python"))
    return chosen if Path(chosen).is_file() else None


def command_of(name: str) -> list[str] | None:
    """How a peer's worker is started, or None where it is not installed."""
    peer = PEERS[name]
    if peer.home == "R":
        rscript = rscript_with("glmnet")
        return [rscript, str(Path(__file__).parent / "peers" / "glmnet.R")] if rscript else None
    module = "sklearn" if name == "sklearn" else peer.package
    interpreters = [peers_python(), sys.executable] if peer.home == "peers" else [sys.executable]
    for python in filter(None, interpreters):
        if _succeeds([python, "-c", f"import {module}"]):
            return [python, "-m", "benchmarks.worker", name]
    return None


def rscript_with(package: str) -> str | None:
    """R, if it has a package."""
    rscript = shutil.which("Rscript")
    return rscript if rscript and _succeeds([rscript, "-e", f"library({package})"]) else None


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def find_peers(names: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Commands of the peers that are installed, and the names of those that are not."""
    commands = {name: command_of(name) for name in names}
    if OURS in commands and commands[OURS] is None:
        raise RuntimeError("bregpath cannot be imported by this interpreter; install it first (make bench does).")
    return {k: v for k, v in commands.items() if v is not None}, [k for k, v in commands.items() if v is None]


class PeerError(Exception):
    """A worker said no, or died."""


class Worker:
    """A peer that holds one problem. `ask` raises `TimeoutError` and ends the process when the limit is passed."""

    def __init__(self, command: list[str], folder: str) -> None:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen([*command, folder], cwd=ROOT, text=True, **pipes)
        self.lines: queue.Queue[str] = queue.Queue()
        self.noise: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            self.hello = self._answer(START_LIMIT)
        except (PeerError, TimeoutError):
            self.close()
            raise
        self.jobs: list[str] = self.hello.get("jobs", ["fit"])

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.lines.put(line)
        self.lines.put("")

    def _listen(self) -> None:
        for line in self.process.stderr or ():
            self.noise = [*self.noise[-20:], line]

    def _answer(self, limit: float) -> dict[str, Any]:
        while True:
            try:
                line = self.lines.get(timeout=limit)
            except queue.Empty:
                self.close()
                raise TimeoutError from None
            if not line:
                raise PeerError(f"the process ended: {''.join(self.noise[-3:]).strip()[-300:]}")
            if line.startswith("{"):
                answer = json.loads(line)
                if "error" in answer:
                    raise PeerError(answer["error"])
                return answer

    def ask(self, job: str, repeats: int, limit: float) -> dict[str, Any]:
        """Run one of ``jobs`` ``repeats`` times in a row."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{job} {repeats}\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):  # ended by itself, or by `close`
            raise PeerError("the process has ended") from None
        return self._answer(limit)

    def close(self) -> None:
        """End this process, and only this."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()  # type: ignore[union-attr]
            except (BrokenPipeError, ValueError):
                pass
