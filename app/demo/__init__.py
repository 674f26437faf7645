"""A story played against a running server over its public API, which ends with the proof that no money was lost.

It knows nothing of Saldo's inside: what it does, a partner can do. `api` speaks HTTP and WebSocket, `story` is what happens,
`proofs` checks the books afterwards, `screen` shows it.
"""

from app.demo.api import Api, ServerTroubleError
from app.demo.story import Issue, play

__all__ = ["Api", "Issue", "ServerTroubleError", "play"]
