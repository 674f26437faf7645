"""One use of the server below a data directory, and the locks by which several uses share it.

The mutex `postgres.mutex` is held while somebody starts or stops the server. Every use holds `postgres.users` with a shared
lock, which the kernel drops however a process ends. So a killed user never keeps the server from being stopped by the last
one, and a server that a crash left behind is found again by the next use.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import Final

from app.embedded.account import choose_account, choose_runner
from app.embedded.cluster import Cluster
from app.embedded.postmaster import read_postmaster
from app.embedded.programs import EmbeddedPostgresError
from app.embedded.running import RunningPostgres

_MUTEX_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.05


def find_running(data_dir: Path) -> RunningPostgres | None:
    """Look for a server that is ready below a data directory, without using it: it may stop at any time."""
    postmaster = read_postmaster(_home(data_dir) / "cluster")
    if postmaster is None or not postmaster.ready:
        return None
    return RunningPostgres(postmaster.socket_directory, postmaster.process_id)


class EmbeddedPostgres:
    """One use of the server: `start` and `stop`, or a `with` block. The first use starts it, the last one stops it."""

    def __init__(self, data_dir: Path, *, fsync: bool = True) -> None:
        """Name the data directory; a server that this use starts without `fsync` is fast and not safe from power loss."""
        self._data_dir = data_dir.resolve()
        self._fsync = fsync
        self._cluster: Cluster | None = None
        self._users_lock: int | None = None

    def __enter__(self) -> RunningPostgres:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> RunningPostgres:
        """Find the server running or start it, with a new cluster if there is none.

        Raises EmbeddedPostgresError where the directory, its owner, its version or the machine stand against it.
        """
        if self._users_lock is not None:
            raise EmbeddedPostgresError(
                "This use of the embedded PostgreSQL has already been started."
            )
        try:
            self._cluster = cluster = self._open_cluster()
            with self._mutex():
                self._users_lock = _open_lock(self._data_dir / "postgres.users")
                # Granted at once: the exclusive lock is only tried for, and only under the mutex.
                fcntl.flock(self._users_lock, fcntl.LOCK_SH)
                cluster.check_version()
                return cluster.find() or cluster.launch()
        except BaseException as error:
            self._close_users_lock()
            if isinstance(error, OSError):
                raise EmbeddedPostgresError(
                    f"No database can be kept in {self._data_dir}: {error}. Make it writable, or choose another directory "
                    "in SALDO_DATA_DIR."
                ) from error
            raise

    def stop(self) -> None:
        """End this use; the last one stops the server in order. Without a start it does nothing."""
        if self._users_lock is None or self._cluster is None:
            return
        try:
            with self._mutex():
                # Nobody else's shared lock stands against it, so this was the last use.
                if _try_exclusive(self._users_lock):
                    self._cluster.shut_down()
        finally:
            self._close_users_lock()

    def _open_cluster(self) -> Cluster:
        # Root lets others pass, because the server's account has to; what is below has its own guard.
        self._data_dir.mkdir(
            mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True
        )
        home = _home(self._data_dir)
        account = choose_account(home)
        account.make_private_directory(home)
        return Cluster(home, account, choose_runner(account, home), self._fsync)

    @contextlib.contextmanager
    def _mutex(self) -> Generator[None]:
        descriptor = _open_lock(self._data_dir / "postgres.mutex")
        try:
            deadline = time.monotonic() + _MUTEX_SECONDS
            while not _try_exclusive(descriptor):
                if time.monotonic() > deadline:
                    raise EmbeddedPostgresError(
                        f"Another process has been starting or stopping the database in {self._data_dir} for "
                        f"{_MUTEX_SECONDS:.0f} s. Wait for it, or end the process that holds {self._data_dir}/postgres.mutex."
                    )
                time.sleep(_POLL_SECONDS)
            yield
        finally:
            os.close(descriptor)

    def _close_users_lock(self) -> None:
        if self._users_lock is not None:
            os.close(self._users_lock)
            self._users_lock = None


def _home(data_dir: Path) -> Path:
    return data_dir.resolve() / "postgres"


def _open_lock(file: Path) -> int:
    return os.open(file, os.O_RDWR | os.O_CREAT, 0o600)


def _try_exclusive(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
