"""The private PostgreSQL of a laptop and of the tests: found when it runs, started when not, stopped by its last user.

Shape. Below the data directory lies `postgres/`: the cluster, its socket and its log. Beside it are two lock files, see
`use`. `account` knows who runs the server, `cluster` how a server is made, started and stopped, `running` what can be asked
of one that runs.

Access. The server listens on no network, only on a socket in a directory that nobody but the server's account may enter.
So whoever can reach the socket could read the data files as well, and trusting every role gives nothing away.

Everything here blocks: call it before an event loop runs, or from a thread.
"""

from app.embedded.programs import EmbeddedPostgresError, postgres_binaries
from app.embedded.running import DATABASE, OWNER, RUNTIME, SUPERUSER, RunningPostgres
from app.embedded.use import EmbeddedPostgres, find_running

__all__ = [
    "DATABASE",
    "OWNER",
    "RUNTIME",
    "SUPERUSER",
    "EmbeddedPostgres",
    "EmbeddedPostgresError",
    "RunningPostgres",
    "find_running",
    "postgres_binaries",
]
