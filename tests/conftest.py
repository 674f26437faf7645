"""Fixtures of all tests: a real PostgreSQL once per session, migrated once, cloned per test."""

import itertools
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, settings

from app.embedded import OWNER, RunningPostgres
from tests.support.postgres import TestDatabase, temporary_server

_TEMPLATE = "template_migrated"

settings.register_profile(
    "ci",
    max_examples=50,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("night", settings.get_profile("ci"), max_examples=5_000)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def postgres() -> Generator[RunningPostgres]:
    """Run the session's server; a parallel worker of the session has its own."""
    with temporary_server(fsync=False) as server:
        yield server


@pytest.fixture(scope="session")
def template_database(postgres: RunningPostgres) -> str:
    """Migrate a database that is then only copied."""
    from app.migrate import upgrade  # noqa: PLC0415 - tests without a schema must not need the migrations

    postgres.create_database(_TEMPLATE)
    # A thread of its own, because the migration runs an event loop and the session has one already.
    with ThreadPoolExecutor(max_workers=1) as executor:
        executor.submit(upgrade, postgres.url(_TEMPLATE, OWNER)).result()
    return _TEMPLATE


_numbers = itertools.count(1)


@pytest.fixture
def database_url(postgres: RunningPostgres, template_database: str) -> Generator[TestDatabase]:
    """Clone the template for one test."""
    name = f"test_{next(_numbers)}"
    postgres.create_database(name, template_database)
    yield TestDatabase.of(postgres, name)
    postgres.drop_database(name)
