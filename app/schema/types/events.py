"""What live feeds tell."""

import strawberry

from app.schema.described import object_type
from app.schema.types.balances import Balance
from app.schema.types.objects import Account, Entry, Transaction


@object_type
class BalanceChange:
    """The balance of one account, as it stands or as it has become."""

    account: Account = strawberry.field(description="The account.")
    balance: Balance = strawberry.field(description="What it has now.")
    transaction: Transaction | None = strawberry.field(
        description="Null in the first message, which is the balance as it stands."
    )


@object_type
class EntryPosted:
    """One entry, as it was booked."""

    cursor: str = strawberry.field(
        description="Give it as `after` to go on from here, in this or a later connection."
    )
    entry: Entry = strawberry.field(description="The entry.")
