"""Money comes in, and then everybody pays everybody at once."""

import asyncio
import random
from typing import Final

from app.demo.amounts import as_input, for_people, reais
from app.demo.api import Json, ServerTroubleError
from app.demo.cast import PEOPLE, Cast, Story, Wallet
from app.demo.documents import DEPOSIT, TRANSFER

AMOUNT_MAX: Final = 199
"""Of one transfer, in centavos."""

_RETRY_EVERY: Final = 8
"""Every such transfer is sent a second time under its old key, as after a lost answer."""


async def deposit_all(story: Story, cast: Cast) -> None:
    """Bring the people's money in from the bank."""
    bank = story.token("bank", ["OPERATE"])
    for wallet in cast.people:
        amount = reais(PEOPLE[wallet.name])
        request: Json = {
            "idempotencyKey": story.key(f"deposit-{wallet.name}"),
            "accountId": wallet.account_id,
            "amount": as_input(amount),
            "description": f"{wallet.name}'s salary",
        }
        await story.book(wallet, DEPOSIT, request, bank)
        story.screen.say(f"{wallet.name} receives {for_people(amount)}")


async def transfer_all(story: Story, cast: Cast, *, transfers: int, at_once: int) -> int:
    """Make all transfers, many at a time; returns how many were sent a second time and answered as replays."""
    task = story.screen.progress.add_task("transfers", total=transfers)
    places = asyncio.Semaphore(at_once)
    replays = 0

    async def one(number: int) -> None:
        nonlocal replays
        payer, payee = _random_pair(cast)
        amount = random.randint(1, AMOUNT_MAX)  # noqa: S311 - a story, not a secret
        request = story.transfer(payer, payee, amount, f"{number}")
        async with places:
            answer = await story.book(payer, TRANSFER, request, payer.token)
            if number % _RETRY_EVERY == 0:
                again = await story.api.execute(payer.token, TRANSFER, {"input": request})
                if not again["replayed"] or again["transaction"] != answer["transaction"]:
                    raise ServerTroubleError("The server booked one intention twice.")
                replays += 1
        story.screen.progress.advance(task)

    async with asyncio.TaskGroup() as tasks:
        for number in range(transfers):
            tasks.create_task(one(number))
    return replays


def _random_pair(cast: Cast) -> tuple[Wallet, Wallet]:
    payer = random.choice(cast.people)  # noqa: S311 - a story, not a secret
    payees = [each for each in (*cast.people, cast.bakery) if each is not payer]
    return payer, random.choice(payees)  # noqa: S311 - see above
