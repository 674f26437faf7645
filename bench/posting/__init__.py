"""How many movements a second the ledger books, and what each kind of them costs, beside its peers on the same server.

Ours are driven through class Ledger without HTTP, each time by new processes (`driver`): 256 requests in flight in all,
everything on (idempotency keys, outbox, triggers, durable commits). The peers are driven by pgbench (`peers`): one stored
function per transfer that does the same work on the same tables, and the statement sequence of a textbook design on tables of
its own. Each of the `contestants` is measured in turn, round by round, so that a change of the machine's mood hits all; the
`report` shows medians. At the end the `books` of everything that was measured are proven sound.

Usage: python -m bench.posting --help
"""
