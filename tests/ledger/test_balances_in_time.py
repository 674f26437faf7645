"""Balances of hot accounts at any instant, where times of posting and stamps are in the worst order that there may be."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest

from app.ledger.model import AccountKind, BalanceTracking
from app.ledger.stamps import stamp_of, stamp_on_stripe
from tests.support.ledger import RunningLedger, new_id
from tests.support.postgres import TestDatabase, connect

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(seconds=1)

WRITE = """
with booked as (
  insert into journal (id, type, caller, effective_at, posted_at)
  select w.id, 'sale', 'writer', w.posted_at, w.posted_at
  from unnest($1::uuid[], $2::timestamptz[]) as w (id, posted_at)
), entered as (
  insert into entry (account_id, sequence, transaction_id, leg, currency, amount, balance_after, posted_at)
  select e.account_id, e.sequence, e.id, e.leg, 'VND', e.amount, e.balance_after, e.posted_at
  from unnest(
    $3::uuid[], $4::bigint[], $5::uuid[], $6::smallint[], $7::bigint[], $8::bigint[], $9::timestamptz[]
  ) as e (account_id, sequence, id, leg, amount, balance_after, posted_at)
), moved as (
  update account as a set balance = last.balance_after, sequence = last.sequence, posted_at = last.posted_at
  from (
    select distinct on (e.account_id) *
    from unnest($3::uuid[], $4::bigint[], $8::bigint[], $9::timestamptz[])
      as e (account_id, sequence, balance_after, posted_at)
    order by e.account_id, e.sequence desc
  ) as last
  where a.id = last.account_id and a.tracking = 'TRACKED'
), told as (
  insert into outbox (transaction_id, account_ids, sequences)
  select id, '{}', '{}' from unnest($1::uuid[]) as w (id)
)
insert into idempotency_key (caller, key, operation, fingerprint, fields, transaction_id)
select 'writer', cast(id as text), 'sale', '', '{}', id from unnest($1::uuid[]) as w (id)
"""


@dataclass(frozen=True, slots=True)
class Line:
    account_id: UUID
    sequence: int
    transaction_id: UUID
    leg: int
    amount: int
    balance_after: int | None
    posted_at: datetime


async def write(connection: "asyncpg.Connection[asyncpg.Record]", lines: Sequence[Line]) -> None:
    """Write rows as an engine might have, past none of the checks."""
    posted = {line.transaction_id: line.posted_at for line in lines}
    await connection.execute(
        WRITE,
        list(posted),
        list(posted.values()),
        [line.account_id for line in lines],
        [line.sequence for line in lines],
        [line.transaction_id for line in lines],
        [line.leg for line in lines],
        [line.amount for line in lines],
        [line.balance_after for line in lines],
        [line.posted_at for line in lines],
    )
    await connection.execute("select setval('hot_stamp', 1000)")


def sums_at(lines: Sequence[Line], instant: datetime) -> Mapping[UUID, int]:
    """Add up in the plainest way."""
    sums: dict[UUID, int] = {}
    for line in lines:
        if line.posted_at <= instant:
            sums[line.account_id] = sums.get(line.account_id, 0) + line.amount
    return sums


@pytest.mark.parametrize("seed", range(4))
async def test_l16_a_derived_account_had_what_was_posted_until_then_whatever_its_stamps_and_snapshots(
    books: RunningLedger, audited: TestDatabase, seed: int
) -> None:
    """Times go up and down along the stamps, as where a clock has jumped; snapshots lie anywhere between them."""
    chance = random.Random(seed)
    a, b = [
        await books.open(tracking=BalanceTracking.DERIVED, allow_negative=True, kind=kind)
        for kind in (AccountKind.REVENUE, AccountKind.ASSET)
    ]
    lines: list[Line] = []
    for base in range(2, 62):
        transaction_id = new_id()
        posted_at = BEGIN + chance.randrange(40) * TICK
        amount = chance.choice([-(2**62), -5, -1, 1, 7, 2**62])
        lines += [
            Line(a.id, stamp_of(base, 0), transaction_id, 0, amount, None, posted_at),
            Line(b.id, stamp_of(base, 0), transaction_id, 1, -amount, None, posted_at),
        ]
    async with connect(audited.owner_url) as connection:
        await write(connection, lines)
        for base in sorted(chance.sample(range(2, 62), 5)):
            for account in (a, b):
                known = [
                    line
                    for line in lines
                    if line.account_id == account.id and line.sequence <= stamp_of(base, 0)
                ]
                await connection.execute(
                    "insert into snapshot (account_id, sequence, balance, posted_at) values ($1, $2, $3, $4)",
                    account.id,
                    known[-1].sequence,
                    sum(line.amount for line in known),
                    max(line.posted_at for line in known),
                )

    for second in range(-1, 42):
        instant = BEGIN + second * TICK
        expected = sums_at(lines, instant)
        assert await books.reader.balances_at([a.id, b.id], instant) == {
            account.id: expected.get(account.id, 0) for account in (a, b)
        }
    now = await books.reader.balances([a.id, b.id])
    assert {key: balance.available for key, balance in now.items()} == sums_at(
        lines, BEGIN + 41 * TICK
    )


@pytest.mark.parametrize("seed", range(4))
async def test_l16_a_striped_account_had_what_each_of_its_stripes_had_then(
    books: RunningLedger, audited: TestDatabase, seed: int
) -> None:
    """Along a stripe time never goes back; between stripes it is in no order, and many lines share an instant."""
    chance = random.Random(seed)
    account = await books.open(
        owner="shop", tracking=BalanceTracking.STRIPED, stripes=3, allow_negative=True
    )
    bank = await books.open(tracking=BalanceTracking.DERIVED, allow_negative=True)
    async with connect(audited.owner_url) as connection:
        rows = await connection.fetch(
            "select id from account where parent_id = $1 order by stripe", account.id
        )
        stripes = [row["id"] for row in rows]
        last: dict[UUID, tuple[int, int, datetime]] = dict.fromkeys(stripes, (0, 0, BEGIN))
        lines: list[Line] = []
        for base in range(2, 122):
            number = chance.choice([0, 0, 0, 0, 1, 2])
            sequence, balance, before = last[stripes[number]]
            posted_at = before + chance.choice([0, 0, 0, 1, 1, 4]) * TICK
            amount = chance.choice([-3, -1, 2, 5])
            stamp = stamp_on_stripe(sequence, base - chance.randrange(2), 0, number)
            last[stripes[number]] = stamp, balance + amount, posted_at
            transaction_id = new_id()
            lines += [
                Line(
                    stripes[number], stamp, transaction_id, 0, amount, balance + amount, posted_at
                ),
                Line(bank.id, stamp_of(base, 0), transaction_id, 1, -amount, None, posted_at),
            ]
        await write(connection, lines)

    end = max(line.posted_at for line in lines)
    instant = BEGIN - TICK
    while instant <= end + TICK:
        expected = sums_at(lines, instant)
        assert await books.reader.balances_at([account.id, bank.id], instant) == {
            account.id: sum(expected.get(stripe_id, 0) for stripe_id in stripes),
            bank.id: expected.get(bank.id, 0),
        }
        instant += TICK
    assert await books.available(account) == sum(balance for _, balance, _ in last.values())
