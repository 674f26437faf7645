"""`saldo demo` holds its own proofs against a running server, as often as it is played."""

import re
from collections.abc import Mapping
from pathlib import Path

from tests.processes.running import RunningServer, run_saldo

_HEADING = re.compile(r"^(\S.*\S) ─+$", re.MULTILINE)
_LIVE = re.compile(r"^live (\S+) +#\d+ +(-?[0-9.]+) BRL →", re.MULTILINE)


def acts_of(played: str) -> Mapping[str, str]:
    """Part what was shown by the headings of its acts."""
    _, *parts = _HEADING.split(played)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def assert_shown_live(acts: Mapping[str, str]) -> None:
    """Each act shows the entries of those whom it is about, as they are booked, and of nobody else."""
    live = {title: sorted(_LIVE.findall(text)) for title, text in acts.items()}
    crowd = live.pop("200 transfers at once, some of them sent twice")
    assert {name for name, _ in crowd} == {"Padaria"}
    assert {title: entries for title, entries in live.items() if entries} == {
        "Money is set aside, and a part of it is spent": [
            ("Ana", "-50.00"),
            ("Ana", "17.50"),
            ("Padaria", "32.50"),
        ],
        "One payment, three sellers, a fee, and no cent lost": [
            ("Bruno", "-100.00"),
            ("Fees", "3.90"),
            ("Horta", "32.03"),
            ("Padaria", "32.04"),
            ("Queijaria", "32.03"),
        ],
        "Some of it goes back": [("Ana", "7.50"), ("Padaria", "-7.50")],
    }


def test_the_demo_proves_the_books_and_can_be_played_again(data_dir: Path) -> None:
    with RunningServer(data_dir) as server:
        for _ in range(2):
            played = run_saldo(data_dir, "demo", "--url", f"{server.url}/graphql")

            assert played.returncode == 0, played.stdout + played.stderr
            assert "INSUFFICIENT_FUNDS" in played.stdout
            assert "IDEMPOTENCY_CONFLICT" in played.stdout
            assert played.stdout.count("✓") == 8
            assert "✗" not in played.stdout
            # Two hundred transfers, three deposits, a hold, its capture, a split, a refund, and the first request of the
            # key that is used twice.
            assert "208 acknowledged, 208 booked" in played.stdout
            assert "1900.00 BRL in wallets, 1900.00 BRL deposited" in played.stdout
            assert "0.00 BRL still set aside" in played.stdout
            assert "-100.00 BRL, 32.04 BRL, 32.03 BRL, 32.03 BRL, 3.90 BRL" in played.stdout
            assert_shown_live(acts_of(played.stdout))
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
