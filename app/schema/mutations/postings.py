"""What operators book: any balanced legs, what takes transactions back, and the sweep of a hot account."""

import strawberry

from app.schema.context import Info
from app.schema.described import object_type
from app.schema.mutations.arguments import Given
from app.schema.mutations.notes import posting_payload
from app.schema.types.inputs.postings import (
    PostTransactionInput,
    RefundTransactionInput,
    ReverseTransactionInput,
    SweepAccountInput,
)
from app.schema.types.payloads import PostingPayload


@object_type
class PostingMutations:
    """What operators book."""

    @strawberry.mutation(
        description="OPERATE. Any balanced set of legs: splits, fees, settlements, currency positions."
    )
    async def post_transaction(
        self, info: Info, input: Given[PostTransactionInput]
    ) -> PostingPayload:
        """Book legs."""
        caller, ledger = info.context.caller, info.context.services.ledger
        return posting_payload(info, await ledger.post_transaction(caller, input.to_command()))

    @strawberry.mutation(
        description="OPERATE. The same legs with their sides swapped, linked both ways; once."
    )
    async def reverse_transaction(
        self, info: Info, input: Given[ReverseTransactionInput]
    ) -> PostingPayload:
        """Take a transaction back."""
        caller, ledger = info.context.caller, info.context.services.ledger
        return posting_payload(info, await ledger.reverse(caller, input.to_command()))

    @strawberry.mutation(
        description=(
            "OPERATE. Gives back some of what a transaction moved between two accounts; as often as there is something "
            "left of it."
        )
    )
    async def refund_transaction(
        self, info: Info, input: Given[RefundTransactionInput]
    ) -> PostingPayload:
        """Give back some of what a transaction moved."""
        caller, ledger = info.context.caller, info.context.services.ledger
        return posting_payload(info, await ledger.refund(caller, input.to_command()))

    @strawberry.mutation(
        description="OPERATE. Gathers the children of a STRIPED account into its first one, in double entry."
    )
    async def sweep_account(self, info: Info, input: Given[SweepAccountInput]) -> PostingPayload:
        """Gather the money of a hot account."""
        caller, ledger = info.context.caller, info.context.services.ledger
        return posting_payload(info, await ledger.sweep(caller, input.to_command()))
