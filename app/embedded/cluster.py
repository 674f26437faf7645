"""The server of one cluster: made, found, started and stopped. The caller sees to it that only one process does so."""

import hashlib
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.embedded.account import Account, Runner
from app.embedded.postmaster import Postmaster, read_postmaster, remove_stale_files
from app.embedded.programs import EmbeddedPostgresError, ProgramError
from app.embedded.running import DATABASE, PORT, SUPERUSER, RunningPostgres

_SOCKET_PATH_BYTES: Final = 103
"""Longest path of a socket on every system: Linux takes 107 bytes, macOS 103."""

_LOG_BYTES_MAX: Final = 16 * 1024 * 1024
_LOG_TAIL_BYTES: Final = 2_000

_READY_SECONDS: Final = 300
"""Recovery after a crash of the machine may take minutes."""

_ORPHANS_SECONDS: Final = 15.0
"""Longest wait for the children of a killed server."""

_POLL_SECONDS: Final = 0.05

_CONFIGURATION: Final = """\
# Written anew at every start; `alter system` is the place for one's own changes.
listen_addresses = ''
port = {port}
unix_socket_directories = '{socket_directory}'
unix_socket_permissions = 0700
max_connections = 200
shared_buffers = 256MB
wal_level = replica
wal_compression = on
max_wal_size = 2GB
checkpoint_completion_target = 0.9
idle_in_transaction_session_timeout = 30s
timezone = 'UTC'
log_timezone = 'UTC'
log_min_messages = warning
log_checkpoints = off
log_line_prefix = '%m [%p] %q%u@%d '
fsync = {durable}
full_page_writes = {durable}
"""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster below `home`, which belongs to the account that the runner runs programs as."""

    home: Path
    account: Account
    runner: Runner
    fsync: bool

    @property
    def directory(self) -> Path:
        """Where PostgreSQL keeps its data."""
        return self.home / "cluster"

    def check_version(self) -> None:
        """Raise EmbeddedPostgresError if another major version of PostgreSQL made the cluster."""
        programs = self.runner.major_version()
        version_file = self.directory / "PG_VERSION"
        if not version_file.exists():
            return
        made_by = version_file.read_text(encoding="ascii").strip()
        if made_by != str(programs):
            raise EmbeddedPostgresError(
                f"{self.directory} was made by PostgreSQL {made_by}, the installed programs are of version {programs}. "
                "Carry the data over with pg_dump of the old version, or choose another directory in SALDO_DATA_DIR."
            )

    def find(self) -> RunningPostgres | None:
        """Look for the server and wait until one that starts is ready, or one that stops is gone."""
        deadline = time.monotonic() + _READY_SECONDS
        while (postmaster := read_postmaster(self.directory)) is not None:
            if postmaster.ready:
                return _running(postmaster)
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(
                    f"The server in {self.directory} isn't ready after {_READY_SECONDS} s; see {self._log}."
                )
            time.sleep(_POLL_SECONDS)
        return None

    def launch(self) -> RunningPostgres:
        """Start the server, with a new cluster if there is none."""
        if not self.directory.exists():
            self._create()
        return self._start(self.directory)

    def shut_down(self) -> None:
        """Stop the server in order, if it runs: connections are ended and everything is on disk."""
        self._stop(self.directory)

    @property
    def _log(self) -> Path:
        return self.home / "server.log"

    def _create(self) -> None:
        """Make a cluster with its roles and its database; it bears its name only when it is complete."""
        unfinished = self.home / "cluster.unfinished"
        if unfinished.exists():
            self._stop(unfinished)
            shutil.rmtree(unfinished)
        self.runner.run(
            "initdb",
            f"--pgdata={unfinished}",
            f"--username={SUPERUSER}",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
            "--data-checksums",
            "--auth-local=trust",
            "--auth-host=reject",
            "--no-instructions",
            *([] if self.fsync else ["--no-sync"]),
        )
        running = self._start(unfinished)
        running.create_roles()
        running.create_database(DATABASE)
        self._stop(unfinished)
        unfinished.rename(self.directory)
        # An unfinished cluster is removed at the next start. So the new name must be on disk before any data is.
        descriptor = os.open(self.home, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _start(self, directory: Path) -> RunningPostgres:
        socket_directory = self._socket_directory()
        self.account.make_private_directory(socket_directory)
        remove_stale_files(directory, socket_directory / f".s.PGSQL.{PORT}.lock")
        self._configure(directory, socket_directory)
        self._bound_log()
        try:
            self._start_after_orphans(directory)
        except BaseException:
            # Interrupted, or not ready in time: nobody uses it yet, so it must not stay.
            self._stop(directory)
            raise
        postmaster = read_postmaster(directory)
        if postmaster is None:
            raise EmbeddedPostgresError(f"The server stopped at once:\n{self._log_tail(0)}")
        return _running(postmaster)

    def _start_after_orphans(self, directory: Path) -> None:
        """Start the server; after a killed one, its children may hold the shared memory for some moments."""
        deadline = time.monotonic() + _ORPHANS_SECONDS
        while True:
            log_start = self._log.stat().st_size if self._log.exists() else 0
            try:
                self.runner.run(
                    "pg_ctl",
                    "start",
                    "--wait",
                    f"--pgdata={directory}",
                    f"--log={self._log}",
                    f"--timeout={_READY_SECONDS}",
                )
            except ProgramError as error:
                reason = self._log_tail(log_start) or str(error)
                if "shared memory block" not in reason or time.monotonic() > deadline:
                    raise EmbeddedPostgresError(f"The server didn't start:\n{reason}") from error
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _stop(self, directory: Path) -> None:
        if read_postmaster(directory) is not None:
            self.runner.run(
                "pg_ctl",
                "stop",
                "--wait",
                "--mode=fast",
                f"--pgdata={directory}",
                f"--timeout={_READY_SECONDS}",
            )

    def _socket_directory(self) -> Path:
        """Choose a directory for the socket, elsewhere if the path below `home` is too long for a socket."""
        beside_cluster = self.home / "socket"
        if len(os.fsencode(beside_cluster / f".s.PGSQL.{PORT}")) <= _SOCKET_PATH_BYTES:
            return beside_cluster
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"saldo-{digest}"

    def _configure(self, directory: Path, socket_directory: Path) -> None:
        quoted = str(socket_directory).replace("'", "''")
        file = directory / "postgresql.conf"
        file.write_text(
            _CONFIGURATION.format(
                port=PORT, socket_directory=quoted, durable="on" if self.fsync else "off"
            ),
            encoding="utf-8",
        )
        self.account.own(file)

    def _bound_log(self) -> None:
        """Keep one earlier log when the current one has grown; looked at here because the server never rotates it."""
        if self._log.exists() and self._log.stat().st_size > _LOG_BYTES_MAX:
            self._log.replace(self._log.with_suffix(".log.1"))

    def _log_tail(self, start: int) -> str:
        if not self._log.exists():
            return ""
        with self._log.open("rb") as log:
            size = self._log.stat().st_size
            log.seek(max(start, size - _LOG_TAIL_BYTES))
            return log.read().decode("utf-8", errors="replace").strip()


def _running(postmaster: Postmaster) -> RunningPostgres:
    return RunningPostgres(postmaster.socket_directory, postmaster.process_id)
