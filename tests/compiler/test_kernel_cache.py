"""The folder of PoCL's kernels: where it is, and whether it takes any."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_no_space_is_noticed_before_a_kernel_is_built(tmp_path: Path) -> None:
    """A limit on files stands for a full disk: PoCL ends the process at either."""
    script = "\n".join(
        [
            "import resource; from pathlib import Path",
            "from uop.compiler.runtime.cache import refusal_of",
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))",
            f"print(refusal_of(Path({str(tmp_path)!r})))",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout == "File too large\n", done.stderr
