"""A story played against a running server over its public API, which ends with the proof that no money was lost.

It knows nothing of Saldo's inside but its arithmetic of money: what it does, a partner can do. `api` speaks HTTP and
WebSocket. `story` is what happens, `cast` to whom; its acts are in `crowd`, `market` and `cheating`, and `watching` shows them
as subscribers see them. `proofs` checks the books afterwards, `screen` is what all of it looks like.
"""

from app.demo.api import Api, ServerTroubleError
from app.demo.cast import Issue
from app.demo.story import play

__all__ = ["Api", "Issue", "ServerTroubleError", "play"]
