"""Opening accounts, and what becomes of them."""

import strawberry

from app.ledger.administration import Opened
from app.ledger.posting.decision import Refused
from app.schema.context import Info
from app.schema.described import object_type
from app.schema.ids import encode_account_id
from app.schema.mutations.arguments import Given
from app.schema.mutations.notes import note
from app.schema.types.inputs.accounts import OpenAccountInput, SetAccountStatusInput
from app.schema.types.payloads import OpenAccountPayload, SetAccountStatusPayload


@object_type
class AccountMutations:
    """What can be done to accounts themselves."""

    @strawberry.mutation(
        description="WALLET opens ordinary wallets of the caller's own, OPERATE any account."
    )
    async def open_account(self, info: Info, input: Given[OpenAccountInput]) -> OpenAccountPayload:
        """Open an account."""
        caller = info.context.caller
        answer = await info.context.services.ledger.open_account(caller, input.to_command(caller))
        if isinstance(answer, Opened):
            note(info, accountId=encode_account_id(answer.account.id), replayed=answer.replayed)
        return OpenAccountPayload.of(answer)

    @strawberry.mutation(description="OPERATE.")
    async def set_account_status(
        self, info: Info, input: Given[SetAccountStatusInput]
    ) -> SetAccountStatusPayload:
        """Freeze, thaw or close an account."""
        answer = await info.context.services.ledger.set_account_status(
            info.context.caller, input.to_command()
        )
        if not isinstance(answer, Refused):
            note(info, accountId=encode_account_id(answer.id), status=answer.status.value)
        return SetAccountStatusPayload.of(answer)
