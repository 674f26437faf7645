"""The peers: the same transfers, written as others would write them, and driven by pgbench."""

import subprocess
from dataclasses import dataclass, field

from app.embedded import RUNTIME, RunningPostgres, postgres_binaries
from bench.posting.books import DATABASE, SQL
from bench.posting.plan import Plan


@dataclass(frozen=True, slots=True)
class Script:
    """A script of pgbench's, one run of which is one transfer."""

    file: str
    clients: int
    variables: dict[str, int] = field(default_factory=dict[str, int])


def run_script(server: RunningPostgres, plan: Plan, script: Script) -> float:
    """Run the script again and again; returns transfers a second."""
    variables = {"wallets": plan.wallets, **script.variables}
    output = subprocess.run(
        [
            str(postgres_binaries() / "pgbench"),
            "--no-vacuum",
            "--protocol=prepared",
            f"--host={server.socket_directory}",
            f"--username={RUNTIME}",
            f"--client={script.clients}",
            "--jobs=2",
            f"--time={plan.seconds}",
            f"--file={SQL / script.file}",
            *(f"--define={name}={value}" for name, value in variables.items()),
            DATABASE,
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    rate = next(line for line in output.splitlines() if line.startswith("tps = "))
    return float(rate.split()[2])
