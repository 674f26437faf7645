"""Settings come from SALDO_* variables alone, and whatever is wrong with them is said by name and without a value."""

from pathlib import Path

import pytest

from app.settings import PREFIX, Settings, SettingsError, load_settings, settings_table

SECRET = "a secret that nobody may ever read in a message"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the variables of whoever runs the tests out of them."""
    for field in Settings.model_fields:
        monkeypatch.delenv(PREFIX + field.upper(), raising=False)


def refusal(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as refused:
        load_settings()
    return str(refused.value)


def test_without_variables_everything_has_a_default() -> None:
    settings = load_settings()

    assert settings.database_url is None
    assert settings.migration_database_url is None
    assert settings.data_dir == Path(".saldo")
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)


def test_variables_are_read_and_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALDO_PORT", "9000")
    monkeypatch.setenv("SALDO_SUBSCRIPTION_POLL_SECONDS", "0.5")
    monkeypatch.setenv("SALDO_GRAPHIQL", "false")
    monkeypatch.setenv("SALDO_DATA_DIR", "/var/lib/saldo")

    settings = load_settings()

    assert settings.port == 9000
    assert settings.subscription_poll_seconds == 0.5
    assert settings.graphiql is False
    assert settings.data_dir == Path("/var/lib/saldo")


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALDO_DATABASE_URL", "")

    assert load_settings().database_url is None


def test_settings_never_change() -> None:
    settings = load_settings()

    with pytest.raises(ValueError, match="frozen"):
        settings.port = 1
    assert settings.port == 8000


def test_an_unknown_variable_is_refused_with_the_likely_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    message = refusal(monkeypatch, SALDO_PROT="9000")

    assert message == "SALDO_PROT: there is no such setting; did you mean SALDO_PORT?"


@pytest.mark.parametrize("name", ["SALDO_FOO", "SALDO_TLS_KEY", "SALDO_"])
def test_a_name_like_no_other_is_refused_without_a_guess(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    message = refusal(monkeypatch, **{name: "1"})

    assert message == f"{name}: there is no such setting; docs/operations.md lists those there are."


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("SALDO_PORT", "http", "must be a whole number"),
        ("SALDO_PORT", "65536", "must be less than or equal to 65535"),
        ("SALDO_WORKERS", "0", "greater than or equal to 1"),
        ("SALDO_RELAY", "outside", "'inside' or 'off'"),
        ("SALDO_POOL_TIMEOUT_MS", "0.5", "must be a whole number"),
        ("SALDO_GRAPHIQL", "perhaps", "must be true or false"),
        ("SALDO_SHUTDOWN_GRACE_SECONDS", "soon", "must be a number"),
        ("SALDO_SHUTDOWN_GRACE_SECONDS", "-1", "greater than or equal to 0"),
        ("SALDO_SUBSCRIPTION_POLL_SECONDS", "inf", "finite"),
        ("SALDO_HOLD_EXPIRY_SECONDS", "0", "greater than or equal to 0.1"),
        ("SALDO_SWEEP_SECONDS", "86401", "less than or equal to 86400"),
        ("SALDO_SNAPSHOT_SECONDS", "nan", "finite"),
        ("SALDO_DATABASE_URL", "mysql://localhost/saldo", "postgresql://"),
        ("SALDO_DATABASE_URL", "postgresql:saldo", "postgresql://"),
        ("SALDO_DATABASE_URL", "postgresql://[::1/saldo", "not a URL"),
        ("SALDO_BROADCAST_URL", "kafka://localhost", "redis://"),
        ("SALDO_JWT_SECRET", "x" * 31, "at least 32 bytes"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, reason: str
) -> None:
    message = refusal(monkeypatch, **{variable: value})

    assert message.startswith(f"{variable}: ")
    assert reason in message
    assert "\n" not in message


def test_all_that_is_wrong_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(monkeypatch, SALDO_PORT="x", SALDO_WORKERS="y", SALDO_NONSENSE="z")

    assert [line.partition(":")[0] for line in message.splitlines()] == [
        "SALDO_NONSENSE",
        "SALDO_PORT",
        "SALDO_WORKERS",
    ]


def test_memory_broadcast_does_not_reach_several_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    message = refusal(monkeypatch, SALDO_BROADCAST_URL="memory://", SALDO_WORKERS="2")

    assert message.startswith("SALDO_BROADCAST_URL: ")


def test_an_owner_needs_the_database_it_owns(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(monkeypatch, SALDO_OWNER_DATABASE_URL="postgresql://owner@db/saldo")

    assert message.startswith("SALDO_OWNER_DATABASE_URL: ")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SALDO_DATABASE_URL": "postgres://app@db/saldo"}, "postgres://app@db/saldo"),
        (
            {
                "SALDO_DATABASE_URL": "postgresql://app@db/saldo",
                "SALDO_OWNER_DATABASE_URL": "postgresql://owner@db/saldo",
            },
            "postgresql://owner@db/saldo",
        ),
    ],
)
def test_migrations_run_as_the_owner_where_one_is_named(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert load_settings().migration_database_url == expected


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALDO_JWT_SECRET", SECRET)
    monkeypatch.setenv("SALDO_DATABASE_URL", "postgresql://app:hush@db/saldo")
    monkeypatch.setenv("SALDO_OWNER_DATABASE_URL", "postgresql://owner:hush@db/saldo")
    monkeypatch.setenv("SALDO_BROADCAST_URL", "redis://:hush@cache")

    shown = f"{load_settings()!r} {load_settings()}"

    assert SECRET not in shown
    assert "hush" not in shown


def test_no_refused_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(
        monkeypatch, SALDO_JWT_SECRET="hush", SALDO_DATABASE_URL="mysql://app:hush@db/saldo"
    )

    assert "hush" not in message


def test_every_setting_is_in_the_table_with_its_meaning() -> None:
    rows = settings_table().splitlines()[2:]

    assert len(rows) == len(Settings.model_fields)
    assert all(info.description for info in Settings.model_fields.values())
