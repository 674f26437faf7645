"""`saldo demo` holds its own proofs against a running server, as often as it is played."""

from pathlib import Path

from tests.processes.running import RunningServer, run_saldo


def test_the_demo_proves_the_books_and_can_be_played_again(data_dir: Path) -> None:
    with RunningServer(data_dir) as server:
        for _ in range(2):
            played = run_saldo(data_dir, "demo", "--url", server.url)

            assert played.returncode == 0, played.stdout + played.stderr
            assert "INSUFFICIENT_FUNDS" in played.stdout
            assert "IDEMPOTENCY_CONFLICT" in played.stdout
            assert played.stdout.count("✓") == 6
            assert "✗" not in played.stdout
        assert server.stop() == 0


def test_the_demo_says_where_nobody_serves(data_dir: Path) -> None:
    played = run_saldo(data_dir, "demo", SALDO_PORT="1")

    assert played.returncode == 1
    assert played.stderr.startswith("saldo: Nobody serves at http://127.0.0.1:1.")
    assert len(played.stderr.splitlines()) == 1


def test_the_demo_says_that_the_secret_is_another(data_dir: Path) -> None:
    with RunningServer(data_dir) as server:
        played = run_saldo(data_dir, "demo", "--url", server.url, "--secret", "x" * 32)

    assert played.returncode == 1
    assert "--secret" in played.stderr
    assert len(played.stderr.splitlines()) == 1
