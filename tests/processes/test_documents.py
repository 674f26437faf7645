"""The documents for those who run Saldo say what is true: their tables are the code's, their examples work."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from prometheus_client.metrics import MetricWrapperBase

from app import metrics
from app.ledger.model import Scope
from app.settings import settings_table
from tests.processes.running import ANSWER_SECONDS, PROJECT, RunningServer, environment

OPERATIONS = PROJECT / "docs" / "operations.md"
README = PROJECT / "README.md"


def table_in(document: Path, name: str) -> str:
    """Find the table between the comments `<!-- name -->` and `<!-- /name -->`."""
    _, _, rest = document.read_text().partition(f"<!-- {name} -->\n")
    table, end, _ = rest.partition(f"<!-- /{name} -->")
    assert end
    return table


def metrics_table() -> str:
    rows = ["| Metric | Kind | Labels | Meaning |", "| --- | --- | --- | --- |", *metric_rows()]
    return "\n".join(rows) + "\n"


def metric_rows() -> Iterator[str]:
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            (family,) = metric.describe()
            shown = f"{family.name}_total" if family.type == "counter" else family.name
            names: tuple[str, ...] = cast("Any", metric)._labelnames
            labels = ", ".join(f"`{name}`" for name in names)
            yield f"| `{shown}` | {family.type} | {labels} | {family.documentation} |"


def test_the_table_of_settings_is_the_one_of_the_code() -> None:
    assert table_in(OPERATIONS, "settings") == settings_table()


def test_the_table_of_metrics_is_the_one_of_the_code() -> None:
    assert table_in(OPERATIONS, "metrics") == metrics_table()


def test_the_documents_that_the_readme_names_exist() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())

    assert links
    assert [link for link in links if not (PROJECT / link).exists()] == []


def test_the_example_of_the_readme_works_when_pasted(data_dir: Path) -> None:
    (example,) = re.findall(r"<<'EOF'\n(.*?)\nEOF\n", README.read_text(), re.DOTALL)
    with RunningServer(data_dir) as server:
        pasted = subprocess.run(
            [sys.executable, "-"],
            input=example,
            env=environment(
                data_dir,
                SALDO_PORT=server.url.rpartition(":")[2],
                TOKEN=server.token("alice", Scope.WALLET, Scope.OPERATE),
            ),
            capture_output=True,
            check=False,
            text=True,
            timeout=ANSWER_SECONDS,
        )
        assert pasted.returncode == 0, pasted.stderr
        booked, replayed, live = pasted.stdout.splitlines()
        assert server.stop() == 0

    assert "'replayed': False" in booked
    assert booked.replace("'replayed': False", "'replayed': True") == replayed
    assert "'balanceAfter': {'decimal': '25.50', 'currency': 'BRL'}" in live
