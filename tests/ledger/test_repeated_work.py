"""Work that is asked for twice at once, or begun again: each piece has a name of its own, and is done once."""

import pytest

from app.ledger.model import AccountKind, BalanceTracking
from app.ledger.movements.transfers import TransferCommand
from tests.support import calls
from tests.support.ledger import RunningLedger, posted, vnd
from tests.support.postgres import TestDatabase, connect
from tests.support.servers import Call, Servers

ENTRIES = 2_500


@pytest.mark.parametrize("atomic", [True, False])
async def test_o05_one_key_twice_in_one_batch_is_one_transaction_and_one_replay(
    books: RunningLedger, *, atomic: bool
) -> None:
    a, b = await books.wallet("alice", 100), await books.wallet("bob")
    twice = [TransferCommand("once", a.id, b.id, vnd(60))] * 2

    answers = await books.ledger.transfer_batch(a.owner, twice, atomic=atomic)

    assert isinstance(answers, list)
    first, second = (posted(answer) for answer in answers)
    assert (first.replayed, second.replayed) == (False, True)
    assert second.transaction == first.transaction
    assert second.entries == first.entries
    assert await books.available(a) == 40


async def test_o05_snapshots_are_taken_once_though_two_processes_take_them(
    books: RunningLedger, audited: TestDatabase, two_servers: Servers
) -> None:
    """A snapshot's key is the account and the last entry that it counts; what it says never changes."""
    account = await books.open(
        kind=AccountKind.REVENUE, allow_negative=True, tracking=BalanceTracking.DERIVED
    )
    customer = await books.wallet("alice", ENTRIES)
    payments = [calls.general(customer, account, 1) for _ in range(ENTRIES)]
    await two_servers.post(books.url, [[payment] for payment in payments])

    again = [[Call("take_snapshots")] * 3]
    answers = await two_servers.post(books.url, again, again)

    taken = sum(answer.count for rows in answers for row in rows for answer in row)
    async with connect(audited.superuser_url) as connection:
        rows = await connection.fetch(
            "select balance from snapshot where account_id = $1", account.id
        )
    assert len(rows) == taken == 1
    assert await books.available(account) == ENTRIES
