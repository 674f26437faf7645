"""What the command line says when something is not as it should be: one line, no traceback, a status that isn't 0."""

from collections.abc import Generator
from pathlib import Path

import pytest

from app.embedded import RunningPostgres
from tests.processes.running import RunningServer, Wallets, client_of, run_saldo
from tests.support.postgres import TestDatabase, connect


@pytest.fixture
def empty_database(postgres: RunningPostgres) -> Generator[TestDatabase]:
    """Make a database that no migration has reached."""
    postgres.create_database("never_migrated")
    yield TestDatabase.of(postgres, "never_migrated")
    postgres.drop_database("never_migrated")


@pytest.mark.parametrize(
    "command",
    [
        *((), ("serve",), ("relay",), ("migrate",), ("token",), ("demo",)),
        *(("import",), ("expire-holds",)),
    ],
)
def test_every_command_explains_itself(tmp_path: Path, command: tuple[str, ...]) -> None:
    explained = run_saldo(tmp_path, *command, "--help")

    assert explained.returncode == 0
    assert "Usage:" in explained.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "variables", "reason"),
    [
        (("serve",), {"SALDO_PROT": "1"}, "SALDO_PROT: there is no such setting"),
        (("serve",), {"SALDO_PORT": "http"}, "SALDO_PORT: "),
        (
            ("serve", "--workers", "2"),
            {"SALDO_BROADCAST_URL": "memory://"},
            "memory:// reaches one",
        ),
        (("serve", "--host", "256.1.1.1"), {}, "There is no address 256.1.1.1"),
        (("serve", "--host", "203.0.113.9"), {}, "another one in SALDO_HOST, or with --host."),
        (
            ("migrate",),
            {"SALDO_DATABASE_URL": "postgresql://127.0.0.1:1/x"},
            "The database can't be used: nothing accepts connections at its address.",
        ),
        (("serve",), {"SALDO_DATABASE_URL": "postgresql://a:hush@127.0.0.1:1/x"}, "can't be used"),
        (("relay",), {"SALDO_DATABASE_URL": "postgresql://127.0.0.1:1/x"}, "can't be used"),
        (
            ("expire-holds",),
            {"SALDO_DATABASE_URL": "postgresql://127.0.0.1:1/x"},
            "The database can't be used: nothing accepts connections at its address.",
        ),
        (("import", "no/such.csv"), {}, "no/such.csv can't be read: No such file or directory."),
        (("import", "."), {}, ". can't be read: Is a directory."),
        (("token", "--sub", "", "--scope", "WALLET"), {}, "--sub must have"),
        (("demo", "--url", "127.0.0.1:8000"), {}, "--url must be an address"),
        (("demo", "--url", "http://[::1"), {}, "--url must be an address"),
        (("demo", "--secret", "short"), {}, "SALDO_JWT_SECRET: must have at least 32 bytes"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    tmp_path: Path, arguments: tuple[str, ...], variables: dict[str, str], reason: str
) -> None:
    refused = run_saldo(tmp_path, *arguments, **variables)

    assert refused.returncode == 1
    assert refused.stdout == ""
    (line,) = refused.stderr.splitlines()
    assert line.startswith("saldo: ")
    assert reason in line
    assert "hush" not in line


def test_each_of_several_mistakes_has_a_line_of_its_own(tmp_path: Path) -> None:
    refused = run_saldo(tmp_path, "serve", SALDO_FOO="1", SALDO_PORT="http")

    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        "saldo: SALDO_FOO: there is no such setting; docs/operations.md lists those there are.",
        "saldo: SALDO_PORT: must be a whole number",
    ]


def test_the_release_can_be_asked_for(tmp_path: Path) -> None:
    asked = run_saldo(tmp_path, "--version")

    assert asked.returncode == 0
    assert asked.stdout.startswith("saldo ")
    assert len(asked.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("token", "--sub", "alice"),
        ("token", "--sub", "alice", "--scope", "EVERYTHING"),
        ("token", "--sub", "alice", "--scope", "WALLET", "--ttl", "0"),
        ("serve", "--workers", "0"),
        ("import",),
        ("pay",),
    ],
)
def test_a_mistyped_command_line_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    refused = run_saldo(tmp_path, *arguments)

    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


def test_a_data_directory_that_cannot_be_one_is_said_in_one_line(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()

    refused = run_saldo(in_the_way, "serve")

    assert refused.returncode == 1
    assert refused.stderr.startswith(f"saldo: No database can be kept in {in_the_way}")
    assert len(refused.stderr.splitlines()) == 1


def test_a_server_of_ones_own_is_migrated_by_its_owner_and_served_by_another_role(
    empty_database: TestDatabase, tmp_path: Path
) -> None:
    login = {"SALDO_DATABASE_URL": empty_database.runtime_url}
    owner = {**login, "SALDO_OWNER_DATABASE_URL": empty_database.owner_url}

    refused = run_saldo(tmp_path, "serve", **login)
    assert refused.returncode == 1
    assert refused.stderr == "saldo: The database's schema isn't up to date. Run: saldo migrate\n"

    for _ in range(2):
        migrated = run_saldo(tmp_path, "migrate", **owner)
        assert migrated.returncode == 0, migrated.stderr
        assert migrated.stdout == "The schema is up to date.\n"

    with RunningServer(tmp_path / "data", **login) as server:
        assert server.stop() == 0


async def test_a_login_needs_the_role_of_the_server_and_nothing_else(
    postgres: RunningPostgres, database_url: TestDatabase, tmp_path: Path
) -> None:
    login = {"SALDO_DATABASE_URL": postgres.url(database_url.name, "server_login")}
    async with connect(database_url.superuser_url) as superuser:
        await superuser.execute("create role server_login login")
        try:
            refused = run_saldo(tmp_path, "serve", **login)
            assert refused.returncode == 1
            assert "grant saldo_runtime to" in refused.stderr
            assert len(refused.stderr.splitlines()) == 1

            await superuser.execute("grant saldo_runtime to server_login")
            with RunningServer(tmp_path / "data", **login) as server:
                async with client_of(server) as client:
                    wallets = await Wallets.open(server, client, funds=100)
                    assert await wallets.balances(client) == [100, 0]
                assert await server.stop_beside() == 0
        finally:
            await superuser.execute("drop role server_login")


def test_serving_with_the_owner_named_migrates_first(
    empty_database: TestDatabase, tmp_path: Path
) -> None:
    variables = {
        "SALDO_DATABASE_URL": empty_database.runtime_url,
        "SALDO_OWNER_DATABASE_URL": empty_database.owner_url,
    }

    with RunningServer(tmp_path / "data", **variables) as server:
        assert server.stop() == 0


def test_no_role_but_the_owner_can_migrate(empty_database: TestDatabase, tmp_path: Path) -> None:
    refused = run_saldo(tmp_path, "migrate", SALDO_DATABASE_URL=empty_database.runtime_url)

    assert refused.returncode == 1
    assert "permission denied" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_command_in_a_folder_without_a_ledger_says_where_it_begins_one(tmp_path: Path) -> None:
    data_dir = tmp_path / "elsewhere"
    first = run_saldo(data_dir, "token", "--sub", "alice", "--scope", "WALLET")
    assert first.stderr == f"No ledger is here yet; a new one begins in {data_dir}\n"
    assert first.stdout.count("\n") == 1
    again = run_saldo(data_dir, "token", "--sub", "alice", "--scope", "WALLET")
    assert again.stderr == ""
