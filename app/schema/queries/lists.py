"""Queries for lists of the whole ledger, which are for those who audit it."""

from functools import partial
from typing import Annotated

import strawberry

from app.ledger import pages
from app.ledger.model import HoldPurpose
from app.schema.context import Info
from app.schema.cursors import (
    account_cursor,
    read_account_cursor,
    read_transaction_cursor,
    transaction_cursor,
)
from app.schema.described import object_type
from app.schema.types.account_lists import AccountConnection, AccountFilter
from app.schema.types.connections import After, Before, First, Last, page_request
from app.schema.types.hold_lists import HoldList, HoldStatusWanted, WithdrawalStatusWanted
from app.schema.types.objects import (
    Account,
    Hold,
    HoldConnection,
    Transaction,
    Withdrawal,
    WithdrawalConnection,
)
from app.schema.types.transaction_lists import TransactionConnection, TransactionFilter


@object_type
class ListQueries:
    """What is listed for those who audit."""

    @strawberry.field(description="AUDIT. All accounts, oldest first.")
    async def accounts(
        self,
        info: Info,
        *,
        first: First = strawberry.UNSET,
        after: After = strawberry.UNSET,
        last: Last = strawberry.UNSET,
        before: Before = strawberry.UNSET,
        filter: Annotated[
            AccountFilter | None, strawberry.argument(description="Only these; all unless given.")
        ] = strawberry.UNSET,
    ) -> AccountConnection:
        """Read a page of all accounts."""
        caller = info.context.caller
        request = page_request(first, after, last, before, read=partial(read_account_cursor, None))
        wanted = pages.AccountFilter() if not filter else filter.to_wanted()
        page = await info.context.reads.once(
            lambda reader: reader.accounts_page(caller, wanted, request)
        )
        return AccountConnection.counted(
            page,
            Account.of,
            lambda account: account_cursor(None, account.id),
            lambda reader: reader.count_accounts(caller, wanted),
        )

    @strawberry.field(description="AUDIT. All transactions, newest first.")
    async def transactions(
        self,
        info: Info,
        *,
        first: First = strawberry.UNSET,
        after: After = strawberry.UNSET,
        last: Last = strawberry.UNSET,
        before: Before = strawberry.UNSET,
        filter: Annotated[
            TransactionFilter | None,
            strawberry.argument(description="Only these; all unless given."),
        ] = strawberry.UNSET,
    ) -> TransactionConnection:
        """Read a page of all transactions."""
        caller = info.context.caller
        request = page_request(first, after, last, before, read=read_transaction_cursor)
        wanted = pages.TransactionFilter() if not filter else filter.to_wanted()
        page = await info.context.reads.once(
            lambda reader: reader.transactions_page(caller, wanted, request)
        )
        return TransactionConnection.of(
            page, Transaction.of, lambda transaction: transaction_cursor(transaction.id)
        )

    @strawberry.field(description="AUDIT. Holds on everybody's money, newest first.")
    async def holds(
        self,
        info: Info,
        *,
        first: First = strawberry.UNSET,
        after: After = strawberry.UNSET,
        last: Last = strawberry.UNSET,
        before: Before = strawberry.UNSET,
        status: HoldStatusWanted = strawberry.UNSET,
    ) -> HoldConnection:
        """Read a page of everybody's holds."""
        holds = HoldList(HoldPurpose.HOLD)
        request = page_request(first, after, last, before, read=holds.read_cursor)
        return HoldConnection.of(await holds.page(info, status, request), Hold.of, holds.cursor)

    @strawberry.field(
        description=(
            "AUDIT. Withdrawals of everybody's money, newest first; those that wait to be settled are PENDING."
        )
    )
    async def withdrawals(
        self,
        info: Info,
        *,
        first: First = strawberry.UNSET,
        after: After = strawberry.UNSET,
        last: Last = strawberry.UNSET,
        before: Before = strawberry.UNSET,
        status: WithdrawalStatusWanted = strawberry.UNSET,
    ) -> WithdrawalConnection:
        """Read a page of everybody's withdrawals."""
        holds = HoldList(HoldPurpose.WITHDRAWAL)
        request = page_request(first, after, last, before, read=holds.read_cursor)
        page = await holds.page(info, status, request)
        return WithdrawalConnection.of(page, Withdrawal.of, holds.cursor)
