"""Subscriptions: what happens to accounts that the caller may read, as it happens.

Whether the caller may is decided before the feed begins, so that a refusal is one message and no feed. A right can't be
lost later but with the token, because an account never changes its owner: the WebSocket ends when its token does.
"""

import contextlib
from collections.abc import AsyncGenerator, Collection, Generator, Mapping, Sequence
from typing import Annotated, Final
from uuid import UUID

import strawberry

from app import metrics
from app.ledger import model
from app.relay.feeds import follow_balances, follow_entries
from app.schema.context import Context, Info
from app.schema.cursors import entry_cursor, read_entry_cursor
from app.schema.described import given, object_type
from app.schema.errors import account_not_found, bad_request
from app.schema.ids import decode_account_id
from app.schema.types.balances import Balance
from app.schema.types.events import BalanceChange, EntryPosted
from app.schema.types.objects import Account, Entry, Transaction

ACCOUNTS_LIMIT: Final = 100

_HOT_POLL_SECONDS: Final = 1.0
"""How often the history of a hot account is looked at though nothing woke its feed: what wasn't settled when it was woken
may be settled by a posting that has nothing to do with the account."""


@object_type
class Subscription:
    """What can be watched."""

    @strawberry.subscription(
        description=(
            "The balance of each account at once, then after every change. A slow reader gets the newest balance, not a "
            "queue of old ones. At most 100 accounts."
        )
    )
    async def balance_changed(
        self,
        info: Info,
        account_ids: Annotated[
            list[strawberry.ID], strawberry.argument(description="1 to 100 accounts.")
        ],
    ) -> AsyncGenerator[BalanceChange]:
        """Follow what accounts have."""
        if not 1 <= len(account_ids) <= ACCOUNTS_LIMIT:
            raise bad_request(f"Between 1 and {ACCOUNTS_LIMIT} accounts may be watched at once.")
        accounts = {
            account.id: account
            for account in [await _account(info.context, text) for text in account_ids]
        }
        return _balance_changes(info.context, accounts)

    @strawberry.subscription(
        description=(
            'Every entry of one account exactly once, in order: those after the cursor first (all of them where it is ""; '
            "none where it is left out), then live, with no gap between."
        )
    )
    async def entry_posted(
        self,
        info: Info,
        account_id: Annotated[
            strawberry.ID, strawberry.argument(description="The account to follow.")
        ],
        after: Annotated[
            str | None,
            strawberry.argument(
                description="Cursor of the last entry that is known already, from here or from Account.entries."
            ),
        ] = strawberry.UNSET,
    ) -> AsyncGenerator[EntryPosted]:
        """Follow an account's history."""
        account = await _account(info.context, account_id)
        cursor = given(after)
        if cursor is None:
            sequence = await info.context.reads.once(
                lambda reader: reader.highest_sequence(account)
            )
        else:
            sequence = read_entry_cursor(account.id, cursor) if cursor else 0
        return _entries_posted(info.context, account, sequence)


async def _account(context: Context, account_id: str) -> model.Account:
    key = decode_account_id(account_id)
    account = None if key is None else await context.reads.accounts.load(key)
    if account is None:
        raise account_not_found()
    return account


async def _entries_posted(
    context: Context, account: model.Account, after_sequence: int
) -> AsyncGenerator[EntryPosted]:
    services, shown = context.services, Account.of(account)

    async def read_after(_account_id: UUID, sequence: int, limit: int) -> Sequence[model.Entry]:
        return await services.reader.entries_after(account, sequence, limit)

    feed = follow_entries(
        services.hub,
        read_after,
        account.id,
        after_sequence,
        poll_seconds=min(services.limits.poll_seconds, _HOT_POLL_SECONDS)
        if account.hot
        else services.limits.poll_seconds,
    )
    with _counted("entryPosted"):
        async with contextlib.aclosing(feed):
            async for entry in feed:
                yield EntryPosted(
                    cursor=entry_cursor(account.id, entry.sequence), entry=Entry.of(entry, shown)
                )


async def _balance_changes(
    context: Context, accounts: Mapping[UUID, model.Account]
) -> AsyncGenerator[BalanceChange]:
    services = context.services

    async def read_now(account_ids: Collection[UUID]) -> Mapping[UUID, model.Balance]:
        return await services.reader.balances(list(account_ids))

    feed = follow_balances(
        services.hub, read_now, list(accounts), poll_seconds=services.limits.poll_seconds
    )
    told: set[UUID] = set()
    with _counted("balanceChanged"):
        async with contextlib.aclosing(feed):
            async for balance in feed:
                account = accounts[balance.account_id]
                transaction = (
                    await _last_transaction(context, account.id) if account.id in told else None
                )
                told.add(account.id)
                yield BalanceChange(
                    account=Account.of(account),
                    balance=Balance.of(account, balance),
                    transaction=transaction,
                )


async def _last_transaction(context: Context, account_id: UUID) -> Transaction | None:
    """Read what has moved the account last."""
    found = await context.reads.once(lambda reader: reader.last_transactions([account_id]))
    transaction_id = found.get(account_id)
    if transaction_id is None:
        return None
    transaction = await context.reads.transactions.load(transaction_id)
    return None if transaction is None else Transaction.of(transaction)


@contextlib.contextmanager
def _counted(field: str) -> Generator[None]:
    subscribers = metrics.SUBSCRIBERS.labels(field)
    subscribers.inc()
    try:
        yield
    finally:
        subscribers.dec()
