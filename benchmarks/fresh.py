"""What one fit costs a fresh process: ``python -m benchmarks.fresh memory|first FOLDER``. Started by `memory`.

Nothing but the standard library is imported before the clock runs.
"""

from __future__ import annotations

import json
import sys
import time

MB = 2**20


def peak_bytes() -> int:
    """Peak resident memory of this process so far.

    Linux keeps the peak of the *parent* in ``ru_maxrss`` of a started process (it survives exec), so its own high-water
    mark is read where there is one.
    """
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def memory(folder: str) -> dict[str, float]:
    """Peak above "NumPy and the data": all that bregpath brings, its imports included."""
    from benchmarks.cases import read_data

    data = read_data(folder)
    before = peak_bytes()
    import bregpath

    bregpath.trace_path(data.X, data.y, loss=data.loss)
    peak = peak_bytes()
    sizes = {"x_mb": data.x_bytes, "with_data_mb": before, "peak_mb": peak, "extra_mb": peak - before}
    return {key: size / MB for key, size in sizes.items()}


def first(folder: str) -> dict[str, float]:
    """Seconds from nothing imported to the first path; reading the data is left out."""
    begun = time.perf_counter()
    import bregpath

    trace_path = bregpath.trace_path
    imported = time.perf_counter()
    from benchmarks.cases import read_data

    data = read_data(folder)
    ready = time.perf_counter()
    trace_path(data.X, data.y, loss=data.loss)
    done = time.perf_counter()
    return {"import": imported - begun, "fit": done - ready, "seconds": imported - begun + done - ready}


if __name__ == "__main__":
    print(json.dumps({"memory": memory, "first": first}[sys.argv[1]](sys.argv[2])))
