"""A server that runs: its addresses, its roles and its databases."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from app.embedded.programs import postgres_binaries, run_program

DATABASE: Final = "saldo"
SUPERUSER: Final = "saldo_superuser"
OWNER: Final = "saldo_owner"
RUNTIME: Final = "saldo_runtime"

PORT: Final = 5432
"""Part of the socket's name; no network port."""


@dataclass(frozen=True, slots=True)
class RunningPostgres:
    """Where a running server is reached, and what its superuser can do there."""

    socket_directory: Path
    process_id: int

    def url(self, database: str = DATABASE, role: str = RUNTIME) -> str:
        """Address a database as a role; both are names without characters that a URL reserves."""
        # The port is written out because client libraries otherwise take it from PGPORT.
        directory = quote(str(self.socket_directory))
        return f"postgresql://{role}@/{database}?host={directory}&port={PORT}"

    def create_roles(self) -> None:
        """Create the schema's owner, and the role of the server, which has no right until migrations grant it."""
        self._run("createuser", "--createrole", OWNER)
        self._run("createuser", RUNTIME)

    def create_database(self, name: str, template: str = "template1") -> None:
        """Create a database of the schema's owner, a copy of `template`, to which nobody may be connected."""
        # Copying files takes an eighth of the time that the default takes, which writes the copy to the log page by page.
        strategy = "--strategy=file_copy"
        self._run("createdb", strategy, f"--template={template}", f"--owner={OWNER}", name)

    def drop_database(self, name: str) -> None:
        """Drop a database if it exists, and end the connections to it."""
        self._run("dropdb", "--force", "--if-exists", name)

    def _run(self, program: str, *arguments: str) -> None:
        server = (f"--host={self.socket_directory}", f"--port={PORT}", f"--username={SUPERUSER}")
        run_program([str(postgres_binaries() / program), *server, *arguments])
