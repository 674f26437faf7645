"""The server's first process, as its `postmaster.pid` tells of it, and whether what that file says is still true.

After a crash the file stays behind, and its number may by now be another process's, in a container even by rule: there the
same numbers come again. PostgreSQL then takes the stranger for its own server and refuses to start.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.embedded.programs import ProgramError, run_program

_PROCESS_TABLE: Final = Path("/proc")

# Lines of postmaster.pid, see src/include/utils/pidfile.h of PostgreSQL.
_LINE_PROCESS_ID: Final = 0
_LINE_SOCKET_DIRECTORY: Final = 4
_LINE_STATUS: Final = 7


@dataclass(frozen=True, slots=True)
class Postmaster:
    """The first process of a running server."""

    process_id: int
    socket_directory: Path
    ready: bool


def read_postmaster(directory: Path) -> Postmaster | None:
    """Read which process serves the cluster in `directory`; None if none does, whatever its file says."""
    try:
        lines = (directory / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not lines or not lines[_LINE_PROCESS_ID].isdigit():
        return None
    process_id = int(lines[_LINE_PROCESS_ID])
    if not _serves(process_id, directory):
        return None
    # The file grows while the server starts.
    lines += [""] * (_LINE_STATUS + 1 - len(lines))
    return Postmaster(
        process_id=process_id,
        socket_directory=Path(lines[_LINE_SOCKET_DIRECTORY]),
        ready=lines[_LINE_STATUS].strip() == "ready",
    )


def remove_stale_files(directory: Path, socket_lock: Path) -> None:
    """Remove what a crashed server left behind and PostgreSQL could take for a running one.

    That it is safe rests on PostgreSQL: it also looks whether any process still has the cluster's shared memory.
    """
    if read_postmaster(directory) is None:
        (directory / "postmaster.pid").unlink(missing_ok=True)
        socket_lock.unlink(missing_ok=True)


def _serves(process_id: int, directory: Path) -> bool:
    program, *arguments = _command_line(process_id) or [""]
    return Path(program).name == "postgres" and str(directory) in arguments


def _command_line(process_id: int) -> list[str]:
    """Read a process's program and arguments; none if there is no such process."""
    if _PROCESS_TABLE.joinpath("self").exists():
        try:
            line = (_PROCESS_TABLE / str(process_id) / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return []
        return line.decode("utf-8", errors="surrogateescape").split("\0")
    try:
        # Elsewhere `ps` doesn't say where an argument ends; a directory with a space in its name is not recognised.
        return run_program(["ps", "-ww", "-o", "command=", "-p", str(process_id)]).split()
    except ProgramError:
        return []
