"""A data directory for the processes of a whole session: making its cluster costs more than most of the tests."""

import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from app.embedded import EmbeddedPostgres, find_running
from tests.processes.running import run_saldo


@pytest.fixture(scope="session")
def _kept_data_dir() -> Generator[Path]:
    data_dir = Path(tempfile.mkdtemp(prefix="saldo-"))
    completed = run_saldo(data_dir, "migrate")
    assert completed.returncode == 0, completed.stderr
    yield data_dir
    shutil.rmtree(data_dir)


@pytest.fixture
def data_dir(_kept_data_dir: Path) -> Generator[Path]:
    """Lend the directory to one test, with its PostgreSQL stopped before and after; it is durable, as for a user."""
    assert find_running(_kept_data_dir) is None
    yield _kept_data_dir
    # A test that killed a server leaves PostgreSQL running, as it is meant to.
    with EmbeddedPostgres(_kept_data_dir):
        pass
    assert find_running(_kept_data_dir) is None
