"""Who plays: people with money, merchants who sell, the platform that takes a fee, and what they all act with.

Every run has names, codes and keys of its own, so that it can be played again on the same ledger.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from app.demo.amounts import CURRENCY, as_input, reais
from app.demo.api import Api, Json, ServerTroubleError
from app.demo.documents import OPEN_ACCOUNT
from app.demo.screen import Screen

Scopes: TypeAlias = Sequence[Literal["WALLET", "AUDIT", "OPERATE"]]
Issue: TypeAlias = Callable[[str, Scopes], str]
"""Makes a token for a subject with scopes."""

PEOPLE: Final = {"Ana": 100_000, "Bruno": 50_000, "Carla": 40_000}
"""Who begins with how much, in centavos; more than 200 of the largest transfers could take from one of them, and what is
spent after them still fits into what is left."""

_MERCHANTS: Final = ("Padaria", "Queijaria", "Horta")
_FEES: Final = "Fees"


@dataclass(frozen=True, slots=True)
class Wallet:
    """An account, and the token of who may read it: its owner's, who acts with it too, or an auditor's."""

    name: str
    token: str
    account_id: str


@dataclass(frozen=True, slots=True)
class Cast:
    """All accounts of the story."""

    people: tuple[Wallet, Wallet, Wallet]
    merchants: tuple[Wallet, Wallet, Wallet]
    fees: Wallet
    """The platform's revenue."""

    @property
    def bakery(self) -> Wallet:
        """The merchant whom everybody pays."""
        return self.merchants[0]

    @property
    def everybody(self) -> Sequence[Wallet]:
        """All of them, in the order in which they are shown."""
        return (*self.people, *self.merchants, self.fees)


@dataclass(slots=True)
class Story:
    """One run, with what it needs and what it has done."""

    api: Api
    screen: Screen
    issue: Issue
    run: str
    acknowledged: list[str] = field(default_factory=list[str])
    """Transactions that the server has said it booked, once for each intention."""

    def token(self, role: str, scopes: Scopes) -> str:
        """Make a token for somebody of this run."""
        return self.issue(f"{role}-{self.run}", scopes)

    def key(self, intention: str) -> str:
        """Make the idempotency key of an intention."""
        return f"{intention}-{self.run}"

    async def book(self, wallet: Wallet, document: str, request: Json, token: str) -> Json:
        """Send a request that must be booked, and note its transaction."""
        answer = await self.api.execute(token, document, {"input": request})
        if answer["userErrors"]:
            raise ServerTroubleError(
                f"The server refused {wallet.name}'s request: {answer['userErrors'][0]['message']}"
            )
        self.acknowledged.append(answer["transaction"]["id"])
        return answer

    def transfer(self, payer: Wallet, payee: Wallet, minor_units: int, what: str) -> Json:
        """Write the request for a transfer."""
        return {
            "idempotencyKey": self.key(f"transfer-{what}"),
            "fromAccountId": payer.account_id,
            "toAccountId": payee.account_id,
            "amount": as_input(reais(minor_units)),
            "description": f"{payer.name} pays {payee.name}",
        }


async def open_accounts(story: Story) -> Cast:
    """Let everybody open a wallet, and the platform an account for its fees."""
    ana, bruno, carla = [await _open_wallet(story, name) for name in PEOPLE]
    bakery, dairy, garden = [await _open_wallet(story, name) for name in _MERCHANTS]
    return Cast((ana, bruno, carla), (bakery, dairy, garden), await _open_fees(story))


async def _open_wallet(story: Story, name: str) -> Wallet:
    token = story.token(name.lower(), ["WALLET"])
    return Wallet(name, token, await _open(story, name, token, {}))


async def _open_fees(story: Story) -> Wallet:
    operator = story.token("platform", ["OPERATE"])
    account_id = await _open(story, _FEES, operator, {"kind": "REVENUE", "owner": None})
    return Wallet(_FEES, story.token("auditor", ["AUDIT"]), account_id)


async def _open(story: Story, name: str, token: str, wanted: Json) -> str:
    request: Json = {
        "idempotencyKey": story.key("open"),
        "currency": CURRENCY,
        "code": f"demo:{story.run}:{name.lower()}",
        **wanted,
    }
    answer = await story.api.execute(token, OPEN_ACCOUNT, {"input": request})
    if answer["account"] is None:
        raise ServerTroubleError(f"The server refused to open an account: {answer['userErrors']}")
    story.screen.say(f"{name} is [bold]{answer['account']['code']}[/]")
    account_id: str = answer["account"]["id"]
    return account_id
