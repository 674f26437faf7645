"""The whole ledger against a model of plain objects, over random requests of every kind, on a real PostgreSQL.

Each example has a database of its own, so that a failing one can be run again and made smaller. The short run tries the
same examples every time; the long one prints the number that its examples were made from.
"""

import random

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from app.embedded import RunningPostgres
from tests.stateful.machine import LedgerMachine
from tests.stateful.real import Databases

SHORT = settings(
    derandomize=True,
    max_examples=16,
    stateful_step_count=40,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
LONG = settings(SHORT, derandomize=False, max_examples=300, stateful_step_count=80, database=None)


@pytest.fixture
def machine(postgres: RunningPostgres, template_database: str) -> type[LedgerMachine]:
    class Machine(LedgerMachine):
        databases = Databases(postgres, template_database)

    return Machine


@pytest.mark.timeout(600)  # Where it fails, making the example smaller takes minutes.
def test_the_ledger_agrees_with_the_model(machine: type[LedgerMachine]) -> None:
    run_state_machine_as_test(machine, settings=SHORT)


@pytest.mark.soak
def test_the_ledger_agrees_with_the_model_for_long(machine: type[LedgerMachine]) -> None:
    number = random.SystemRandom().randrange(2**32)
    print(f"examples made from {number}")
    run_state_machine_as_test(seed(number)(machine), settings=LONG)
