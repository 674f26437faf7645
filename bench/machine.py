"""Says on which machine figures were measured."""

import os
import platform
from pathlib import Path


def describe_machine() -> str:
    """Return processor, cores, memory and software versions in one line."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    memory_gib = pages * page_bytes / 2**30
    return (
        f"{model}, {os.cpu_count()} cores, {memory_gib:.0f} GiB, Python {platform.python_version()}"
    )
