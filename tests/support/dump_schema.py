"""The migrated schema as text, to be compared with the one that is kept; run as a module to write the kept one anew."""

import re
import subprocess
from pathlib import Path
from typing import Final

from app.embedded import DATABASE, OWNER, SUPERUSER, RunningPostgres, postgres_binaries
from app.migrate import upgrade
from tests.support.postgres import temporary_server

GOLDEN: Final = Path(__file__).parents[1] / "postgres" / "schema.sql"
REGENERATE: Final = "python -m tests.support.dump_schema"

_PASSING: Final = re.compile(
    r"^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*)\n", re.MULTILINE
)
"""Lines that say which versions made the dump, or how to load it, and nothing of the schema."""


def dump_schema(server: RunningPostgres, database: str) -> str:
    """Dump the schema of a database with its rights, without what changes from version to version."""
    dumped = subprocess.run(  # noqa: S603 - PostgreSQL's own program, with arguments as a list
        [str(postgres_binaries() / "pg_dump"), "--schema-only", server.url(database, SUPERUSER)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return re.sub(r"\n{3,}", "\n\n", _PASSING.sub("", dumped)).strip() + "\n"


if __name__ == "__main__":
    with temporary_server(fsync=False) as running:
        upgrade(running.url(DATABASE, OWNER))
        GOLDEN.write_text(dump_schema(running, DATABASE), encoding="utf-8")
    print(f"written: {GOLDEN}")
