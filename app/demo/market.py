"""How a marketplace works: money is set aside and spent in part, one payment is split among many, some of it goes back."""

from typing import Final

from app.demo.amounts import as_input, for_people, reais
from app.demo.api import Json
from app.demo.cast import Cast, Story, Wallet
from app.demo.documents import BALANCE, CAPTURE_HOLD, PLACE_HOLD, POST_TRANSACTION, REFUND
from app.demo.screen import money
from app.demo.watching import Seen
from app.ledger.money import Money

_SET_ASIDE: Final = reais(5_000)
_CAPTURED: Final = reais(3_250)
_REFUNDED: Final = reais(750)

_PRICE: Final = reais(10_000)
_FEE_TO_REST: Final = (39, 961)
"""A fee of 3.9 %."""


async def hold(story: Story, cast: Cast, seen: Seen) -> str:
    """Set money of Ana's aside, and give the bakery a part of it; returns the transaction of that."""
    ana, bakery = cast.people[0], cast.bakery
    seen.shown = (ana, bakery)
    placed = await story.book(
        ana,
        PLACE_HOLD,
        {
            "idempotencyKey": story.key("hold"),
            "accountId": ana.account_id,
            "amount": as_input(_SET_ASIDE),
            "description": "Ana orders a cake",
        },
        ana.token,
    )
    await seen.wait_for_transaction(placed["transaction"]["id"], [ana])
    account = await story.api.execute(ana.token, BALANCE, {"id": ana.account_id})
    available, held = account["balance"]["available"], account["balance"]["held"]
    story.screen.say(
        f"The hold is [yellow]{placed['hold']['status']}[/]: Ana has {money(held)} set aside, {money(available)} to spend"
    )
    captured = await story.book(
        ana,
        CAPTURE_HOLD,
        {
            "idempotencyKey": story.key("capture"),
            "holdId": placed["hold"]["id"],
            "toAccountId": bakery.account_id,
            "amount": as_input(_CAPTURED),
            "description": "The cake was small",
        },
        story.token("platform", ["OPERATE"]),
    )
    transaction_id: str = captured["transaction"]["id"]
    await seen.wait_for_transaction(transaction_id, [ana, bakery])
    story.screen.say(
        f"The hold is [yellow]{captured['hold']['status']}[/]: {bakery.name} took {money(captured['hold']['captured'])}, "
        "and the rest went back to Ana in the same transaction"
    )
    return transaction_id


async def split(story: Story, cast: Cast, seen: Seen) -> str:
    """Let Bruno pay three merchants and a fee at once; returns the transaction."""
    bruno = cast.people[1]
    seen.shown = cast.everybody
    fee, rest = _PRICE.allocate(_FEE_TO_REST)
    shares = dict(zip(cast.merchants, rest.allocate((1, 1, 1)), strict=True)) | {cast.fees: fee}
    booked = await story.book(
        bruno,
        POST_TRANSACTION,
        {
            "idempotencyKey": story.key("split"),
            "type": "market_sale",
            "legs": [
                _leg(bruno, "DEBIT", _PRICE),
                *(_leg(payee, "CREDIT", share) for payee, share in shares.items()),
            ],
            "description": "Bruno's basket",
        },
        story.token("platform", ["OPERATE"]),
    )
    transaction_id: str = booked["transaction"]["id"]
    await seen.wait_for_transaction(transaction_id, [bruno, *shares])
    story.screen.say(
        f"Bruno's {for_people(_PRICE)} became "
        + ", ".join(f"{share.decimal} for {payee.name}" for payee, share in shares.items())
    )
    return transaction_id


async def refund(story: Story, cast: Cast, seen: Seen, transaction_id: str) -> None:
    """Let the bakery give Ana back some of what it got by this transaction."""
    ana, bakery = cast.people[0], cast.bakery
    seen.shown = (ana, bakery)
    booked = await story.book(
        bakery,
        REFUND,
        {
            "idempotencyKey": story.key("refund"),
            "transactionId": transaction_id,
            "amount": as_input(_REFUNDED),
            "reason": "The cherry was missing",
        },
        story.token("platform", ["OPERATE"]),
    )
    await seen.wait_for_transaction(booked["transaction"]["id"], [ana, bakery])
    story.screen.say(
        f"{bakery.name} gave {for_people(_REFUNDED)} of {for_people(_CAPTURED)} back to Ana"
    )


def _leg(wallet: Wallet, direction: str, amount: Money) -> Json:
    return {"accountId": wallet.account_id, "direction": direction, "amount": as_input(amount)}
