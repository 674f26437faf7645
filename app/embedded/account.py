"""Who runs the server: the caller, or for root an unprivileged account, because PostgreSQL refuses to run as root.

Where that account may not enter a directory above its files, such as /root, it is given the one capability that lets it
pass; where it may, it gets none.
"""

import os
import pwd
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.embedded.programs import (
    SYSTEM_PATH,
    EmbeddedPostgresError,
    ProgramError,
    postgres_binaries,
    run_program,
)

_SYSTEM_ACCOUNTS: Final = ("postgres", "nobody")
"""Who may run the server for root: the owner of an existing cluster, else the first that exists."""

_CAPABILITIES: Final = ("-all", "-all,+dac_read_search", "-all,+dac_override")
"""What the account may get to pass the directories above its files, least first; containers often withhold the second."""

_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")


@dataclass(frozen=True, slots=True)
class Account:
    """Who owns the cluster's files and runs its programs."""

    name: str
    user_id: int
    group_id: int

    def make_private_directory(self, directory: Path) -> None:
        """Make a directory that only this account may enter, or check that it is one.

        Raises EmbeddedPostgresError if it is somebody else's, or open to others.
        """
        try:
            directory.mkdir(mode=0o700)
        except FileExistsError:
            self._check_private(directory)
        self.own(directory)

    def own(self, path: Path) -> None:
        """Give a file that root has written to the account; the caller's own files are its own already."""
        if os.geteuid() == 0:
            os.chown(path, self.user_id, self.group_id, follow_symlinks=False)

    def _check_private(self, directory: Path) -> None:
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise EmbeddedPostgresError(
                f"{directory} is in the way: it isn't a directory. Remove it."
            )
        # Root's own are those of a start that was cut off before the account got them.
        if status.st_uid not in {self.user_id, os.geteuid()}:
            raise EmbeddedPostgresError(
                f"{directory} belongs to {_name(status.st_uid)}, not to {self.name}. Run Saldo as the one who made it, "
                "or choose another directory in SALDO_DATA_DIR."
            )
        if status.st_mode & 0o077:
            raise EmbeddedPostgresError(
                f"{directory} is open to others. Run: chmod 700 {directory}"
            )


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs PostgreSQL's programs as an account, in a directory that it may reach."""

    directory: Path
    prefix: tuple[str, ...]

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of PostgreSQL to its end; raises ProgramError if it fails."""
        return self._run(str(postgres_binaries() / program), *arguments)

    def major_version(self) -> int:
        """Ask the server's program for its version, which proves that the account reaches it and the directory."""
        script = 'cd "$1" && exec "$2" --version'
        answer = self._run(
            "/bin/sh",
            "-c",
            script,
            "sh",
            str(self.directory),
            str(postgres_binaries() / "postgres"),
        )
        match = _VERSION.search(answer)
        if match is None:
            raise ProgramError(f"unexpected answer of postgres --version: {answer.strip()}")
        return int(match[1])

    def _run(self, *command: str) -> str:
        # The prefix changes the account; without one the directory can be entered at once.
        return run_program([*self.prefix, *command], None if self.prefix else self.directory)


def choose_account(home: Path) -> Account:
    """Choose who runs the server whose files are, or will be, below `home`."""
    if os.geteuid() != 0:
        return Account(_name(os.geteuid()), os.geteuid(), os.getegid())
    accounts = [found for name in _SYSTEM_ACCOUNTS if (found := _system_account(name)) is not None]
    if not accounts:
        raise EmbeddedPostgresError(
            "PostgreSQL refuses to run as root, and there is no account `postgres` or `nobody` to run it. "
            "Run Saldo as an ordinary user, or add such an account."
        )
    owner_id = home.lstat().st_uid if home.exists() else None
    return next((account for account in accounts if account.user_id == owner_id), accounts[0])


def choose_runner(account: Account, directory: Path) -> Runner:
    """Find the least privilege with which the account reaches the programs and its directory."""
    if os.geteuid() != 0:
        return Runner(directory, ())
    setpriv = shutil.which("setpriv", path=SYSTEM_PATH)
    if setpriv is None:
        raise EmbeddedPostgresError(
            "Started by root, the embedded PostgreSQL needs `setpriv` of util-linux. Install it, or run as an ordinary user."
        )
    refusal = ""
    for capabilities in _CAPABILITIES:
        runner = Runner(directory, _prefix(setpriv, account, capabilities))
        try:
            runner.major_version()
        except ProgramError as error:
            refusal = str(error)
        else:
            return runner
    raise EmbeddedPostgresError(
        f"The account {account.name} can't reach {directory} or {postgres_binaries()} ({refusal}). Run Saldo as an "
        "ordinary user, or move it to a directory that everybody may enter (chmod o+x on those above it)."
    )


def _prefix(setpriv: str, account: Account, capabilities: str) -> tuple[str, ...]:
    return (
        setpriv,
        f"--reuid={account.user_id}",
        f"--regid={account.group_id}",
        "--clear-groups",
        f"--inh-caps={capabilities}",
        f"--ambient-caps={capabilities}",
        "--",
    )


def _system_account(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, entry.pw_uid, entry.pw_gid)


def _name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return f"user {user_id}"
