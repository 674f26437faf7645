"""`saldo demo` holds its own proofs against a running server, as often as it is played."""

from pathlib import Path

from tests.processes.running import RunningServer, run_saldo


def test_the_demo_proves_the_books_and_can_be_played_again(data_dir: Path) -> None:
    with RunningServer(data_dir) as server:
        for _ in range(2):
            played = run_saldo(data_dir, "demo", "--url", f"{server.url}/graphql")

            assert played.returncode == 0, played.stdout + played.stderr
            assert "INSUFFICIENT_FUNDS" in played.stdout
            assert "IDEMPOTENCY_CONFLICT" in played.stdout
            assert played.stdout.count("✓") == 6
            assert "✗" not in played.stdout
            # Two hundred transfers, three deposits and the first request of the key that is used twice.
            assert "204 acknowledged, 204 booked" in played.stdout
            assert "1900.00 BRL in wallets, 1900.00 BRL deposited" in played.stdout
            acts = played.stdout.partition("Two requests that must be refused")
            assert "live Padaria" in acts[0]
            assert "live Padaria" not in acts[2]
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
    assert played.stdout == ""
    assert "--secret" in played.stderr
    assert len(played.stderr.splitlines()) == 1


def test_the_demo_makes_no_secret_of_its_own(data_dir: Path, tmp_path: Path) -> None:
    with RunningServer(data_dir) as server:
        played = run_saldo(tmp_path, "demo", "--url", server.url)

    assert played.returncode == 1
    assert played.stdout == ""
    assert played.stderr.startswith(f"saldo: There is no token secret in {tmp_path}. Start the")
    assert list(tmp_path.iterdir()) == []
