"""The embedded PostgreSQL, with real servers, real crashes and real processes as its other users.

One durable cluster serves most tests, because making one costs more than everything else here; each test begins and ends with
its server stopped.
"""

import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from app.embedded import (
    DATABASE,
    OWNER,
    RUNTIME,
    SUPERUSER,
    EmbeddedPostgres,
    EmbeddedPostgresError,
    RunningPostgres,
    find_running,
    postgres_binaries,
)
from tests.support.postgres import connect, scalar

IS_ROOT = os.geteuid() == 0
PROJECT = Path(__file__).parents[2]

USER_PROCESS = """
import sys
from pathlib import Path
from app.embedded import EmbeddedPostgres
with EmbeddedPostgres(Path(sys.argv[1])) as server:
    print(server.process_id, flush=True)
    sys.stdin.readline()
"""
"""A user of the cluster that says which server it found, and stays until it is told to go."""


class OtherUser:
    """Another process that uses the cluster."""

    def __init__(self, data_dir: Path, *prefix: str) -> None:
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-c", USER_PROCESS, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=PROJECT,
            text=True,
        )
        assert self._process.stdout is not None
        self.server_process_id = int(self._process.stdout.readline())

    def leave(self) -> None:
        """Let it end in order."""
        self._process.communicate("\n")
        assert self._process.returncode == 0

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def cluster_dir() -> Generator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="saldo-"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def data_dir(cluster_dir: Path) -> Generator[Path]:
    """Hand out the module's cluster, and see to it that a failed test leaves no server behind."""
    yield cluster_dir
    with EmbeddedPostgres(cluster_dir):
        pass
    assert find_running(cluster_dir) is None


def kill(server: RunningPostgres) -> None:
    """Kill the server's first process as a crash would, and wait until it is gone."""
    # Waiting for the number to vanish would last for ever where nobody collects orphaned processes.
    descriptor = os.pidfd_open(server.process_id)
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        select.select([descriptor], [], [])
    finally:
        os.close(descriptor)


def pid_file(data_dir: Path) -> Path:
    return data_dir / "postgres" / "cluster" / "postmaster.pid"


async def test_a_new_cluster_has_its_roles_and_its_database(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as server:
        async with connect(server.url(role=SUPERUSER)) as connection:
            roles = await connection.fetch(
                "select rolname, rolsuper, rolcreaterole, rolcreatedb, rolcanlogin from pg_roles "
                "where rolname like 'saldo%' order by rolname"
            )
            owner = await connection.fetchval(
                "select pg_get_userbyid(datdba) from pg_database where datname = $1", DATABASE
            )
        assert await scalar(server.url(), "select current_user::text") == RUNTIME

    assert [tuple(role) for role in roles] == [
        (OWNER, False, True, False, True),
        (RUNTIME, False, False, False, True),
        (SUPERUSER, True, True, True, True),
    ]
    assert owner == OWNER


async def test_it_is_durable_and_listens_on_no_network(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as server:
        async with connect(server.url()) as connection:
            rows = await connection.fetch("select name, setting from pg_settings")
    settings = {row["name"]: row["setting"] for row in rows}

    assert settings["fsync"] == "on"
    assert settings["synchronous_commit"] == "on"
    assert settings["full_page_writes"] == "on"
    assert settings["data_checksums"] == "on"
    assert settings["server_encoding"] == "UTF8"
    assert settings["listen_addresses"] == ""


def test_only_its_account_reaches_the_socket(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as server:
        assert server.socket_directory.stat().st_mode & 0o777 == 0o700
        assert psutil.Process(server.process_id).uids().effective != 0


def test_it_is_not_in_the_process_group_of_its_starter(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as server:
        assert os.getpgid(server.process_id) != os.getpgid(0)


async def test_data_survives_a_stop(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as server:
        await scalar(server.url(role=OWNER), "create table kept as select 7 as number")

    assert find_running(data_dir) is None
    with EmbeddedPostgres(data_dir) as server:
        assert await scalar(server.url(role=OWNER), "select number from kept") == 7
        await scalar(server.url(role=OWNER), "drop table kept")


def test_a_use_cannot_be_started_twice(data_dir: Path) -> None:
    use = EmbeddedPostgres(data_dir)
    with use, pytest.raises(EmbeddedPostgresError, match="already"):
        use.start()


def test_stop_without_start_does_nothing(tmp_path: Path) -> None:
    EmbeddedPostgres(tmp_path / "never").stop()

    assert list(tmp_path.iterdir()) == []


def test_nothing_runs_where_nothing_was_started(tmp_path: Path) -> None:
    assert find_running(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_the_last_user_stops_the_server(data_dir: Path) -> None:
    starter = EmbeddedPostgres(data_dir)
    server = starter.start()
    other = OtherUser(data_dir)
    assert other.server_process_id == server.process_id

    starter.stop()
    assert find_running(data_dir) == server

    other.leave()
    assert find_running(data_dir) is None
    assert not pid_file(data_dir).exists()


def test_users_that_come_at_once_share_one_server(data_dir: Path) -> None:
    with ThreadPoolExecutor() as executor:
        users = list(executor.map(OtherUser, [data_dir] * 3))
    assert len({user.server_process_id for user in users}) == 1

    with ThreadPoolExecutor() as executor:
        list(executor.map(OtherUser.leave, users))
    assert find_running(data_dir) is None


def test_a_killed_user_is_no_user(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as server:
        OtherUser(data_dir).kill()
        assert find_running(data_dir) == server

    assert find_running(data_dir) is None


def test_a_server_left_behind_is_found_again(data_dir: Path) -> None:
    other = OtherUser(data_dir)
    other.kill()

    with EmbeddedPostgres(data_dir) as server:
        assert server.process_id == other.server_process_id


async def test_what_was_committed_survives_a_killed_server(data_dir: Path) -> None:
    use = EmbeddedPostgres(data_dir)
    server = use.start()
    await scalar(server.url(role=OWNER), "create table committed as select 7 as number")
    kill(server)
    assert find_running(data_dir) is None
    use.stop()

    with EmbeddedPostgres(data_dir) as again:
        assert again.process_id != server.process_id
        assert await scalar(again.url(role=OWNER), "select number from committed") == 7
        await scalar(again.url(role=OWNER), "drop table committed")


def test_a_process_file_whose_number_is_now_a_strangers_is_survived(data_dir: Path) -> None:
    use = EmbeddedPostgres(data_dir)
    server = use.start()
    lock_file = server.socket_directory / ".s.PGSQL.5432.lock"
    account = psutil.Process(server.process_id).uids().real
    kill(server)
    use.stop()
    with subprocess.Popen(["/bin/sleep", "60"], user=account if IS_ROOT else None) as stranger:
        for file in (pid_file(data_dir), lock_file):
            _, *rest = file.read_text().splitlines()
            file.write_text("\n".join([str(stranger.pid), *rest]) + "\n")

        with EmbeddedPostgres(data_dir) as again:
            assert again.process_id != stranger.pid
        assert stranger.poll() is None
        stranger.terminate()


def test_a_broken_process_file_is_survived(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir):
        pass
    pid_file(data_dir).touch()

    with EmbeddedPostgres(data_dir) as server:
        assert find_running(data_dir) == server


def test_a_cluster_that_was_not_finished_is_made_anew(tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path, fsync=False):
        pass
    home = tmp_path / "postgres"
    (home / "cluster").rename(home / "cluster.unfinished")

    with EmbeddedPostgres(tmp_path, fsync=False) as server:
        server.create_database("another")

    assert not (home / "cluster.unfinished").exists()


def test_a_path_too_long_for_a_socket_gets_one_elsewhere(tmp_path: Path) -> None:
    long_dir = tmp_path / ("long-" * 20)
    with EmbeddedPostgres(long_dir, fsync=False) as server:
        assert not server.socket_directory.is_relative_to(long_dir)
        assert server.socket_directory.stat().st_mode & 0o777 == 0o700
        other = OtherUser(long_dir)
        assert other.server_process_id == server.process_id
        other.leave()
    server.socket_directory.rmdir()


async def test_a_database_is_copied_and_dropped_although_in_use(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as server:
        server.create_database("model")
        await scalar(server.url("model", OWNER), "create table copied as select 7 as number")
        server.create_database("copy", template="model")
        async with connect(server.url("copy", OWNER)) as connection:
            assert await connection.fetchval("select number from copied") == 7
            server.drop_database("copy")
        server.drop_database("copy")
        server.drop_database("model")
        names = await scalar(server.url(), "select array_agg(datname::text) from pg_database")

    assert "copy" not in names
    assert "model" not in names


def test_the_programs_are_at_hand() -> None:
    assert {"psql", "pgbench", "pg_dump", "postgres"} <= {
        p.name for p in postgres_binaries().iterdir()
    }


def test_a_cluster_of_another_version_is_refused_and_left_alone(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir):
        pass
    version_file = data_dir / "postgres" / "cluster" / "PG_VERSION"
    version = version_file.read_text()
    version_file.write_text("17\n")
    try:
        with pytest.raises(EmbeddedPostgresError, match=r"made by PostgreSQL 17.*pg_dump"):
            EmbeddedPostgres(data_dir).start()
        assert not pid_file(data_dir).exists()
    finally:
        version_file.write_text(version)


def test_a_server_that_does_not_start_says_why(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir):
        pass
    control_file = data_dir / "postgres" / "cluster" / "global" / "pg_control"
    hidden = control_file.rename(control_file.with_suffix(".hidden"))
    try:
        with pytest.raises(EmbeddedPostgresError, match="pg_control"):
            EmbeddedPostgres(data_dir).start()
    finally:
        hidden.rename(control_file)


def test_a_directory_open_to_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres").chmod(0o755)

    with pytest.raises(EmbeddedPostgresError, match="chmod 700"):
        EmbeddedPostgres(tmp_path).start()

    assert [path.name for path in tmp_path.iterdir()] == ["postgres"]


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "postgres").touch()

    with pytest.raises(EmbeddedPostgresError, match="isn't a directory"):
        EmbeddedPostgres(tmp_path).start()


def test_a_data_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(EmbeddedPostgresError, match="SALDO_DATA_DIR"):
        EmbeddedPostgres(tmp_path / "file" / "below").start()


@pytest.mark.skipif(not IS_ROOT, reason="only root can run as somebody else")
class TestAsRoot:
    """What root alone meets: other accounts and directories that they may not enter."""

    @staticmethod
    def ordinary(account: str) -> tuple[str, ...]:
        entry = pwd.getpwnam(account)
        return (
            "/usr/bin/setpriv",
            f"--reuid={entry.pw_uid}",
            f"--regid={entry.pw_gid}",
            "--clear-groups",
            "--inh-caps=-all",
            "--",
        )

    def test_a_directory_that_the_account_may_not_enter_is_no_obstacle(
        self, tmp_path: Path
    ) -> None:
        tmp_path.chmod(0o700)
        with EmbeddedPostgres(tmp_path / "below", fsync=False) as server:
            assert psutil.Process(server.process_id).uids().effective != 0

    def test_without_any_capability_the_refusal_says_what_helps(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o700)
        script = (
            "import sys; from pathlib import Path; from app.embedded import EmbeddedPostgres\n"
            "EmbeddedPostgres(Path(sys.argv[1])).start()"
        )
        refused = subprocess.run(
            [
                "/usr/bin/setpriv",
                "--bounding-set=-dac_read_search,-dac_override",
                "--",
                sys.executable,
                "-c",
                script,
                str(tmp_path / "below"),
            ],
            check=False,
            capture_output=True,
            cwd=PROJECT,
            text=True,
        )

        assert refused.returncode != 0
        assert "EmbeddedPostgresError: The account " in refused.stderr
        assert "chmod o+x" in refused.stderr

    def test_the_directory_of_somebody_else_is_refused(self, tmp_path: Path) -> None:
        home = tmp_path / "postgres"
        home.mkdir(mode=0o700)
        os.chown(home, 12_345, 12_345)

        with pytest.raises(EmbeddedPostgresError, match=r"belongs to user 12345.*SALDO_DATA_DIR"):
            EmbeddedPostgres(tmp_path).start()

        assert list(home.iterdir()) == []

    def test_an_ordinary_user_runs_it_as_itself(self) -> None:
        nobody = pwd.getpwnam("nobody")
        data_dir = Path(tempfile.mkdtemp(prefix="saldo-"))
        try:
            os.chown(data_dir, nobody.pw_uid, nobody.pw_gid)
            prefix = self.ordinary("nobody")
            probe = [*prefix, sys.executable, "-c", "import app.embedded"]
            if subprocess.run(probe, check=False, cwd=PROJECT, capture_output=True).returncode:
                pytest.skip("this Python or this directory is out of an ordinary user's reach")
            user = OtherUser(data_dir, *prefix)
            assert psutil.Process(user.server_process_id).uids().effective == nobody.pw_uid
            user.leave()
            assert find_running(data_dir) is None
        finally:
            shutil.rmtree(data_dir)
