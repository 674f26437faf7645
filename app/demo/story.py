"""What happens in the demo: wallets are opened and funded, money moves two hundred times at once, somebody tries to cheat.

Every run has names, codes and keys of its own, so that it can be played again on the same ledger.
"""

import asyncio
import random
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from app.demo.api import Api, Json, ServerTroubleError
from app.demo.documents import (
    BALANCE_CHANGED,
    DEPOSIT,
    ENTRY_POSTED,
    OPEN_ACCOUNT,
    TRANSFER,
)
from app.demo.proofs import Line, Statement, in_reais, prove, read_statement
from app.demo.screen import Screen, money

Issue: TypeAlias = Callable[[str, Sequence[Literal["WALLET", "AUDIT", "OPERATE"]]], str]
"""Makes a token for a subject with scopes."""

CURRENCY: Final = "BRL"
TRANSFERS: Final = 200
CONCURRENCY: Final = 40

_PEOPLE: Final = {"Ana": 100_000, "Bruno": 50_000, "Carla": 40_000}
"""Who begins with how much, in centavos; more than 200 of the largest transfers could take from one of them."""
_MERCHANT: Final = "Padaria"
_AMOUNT_MAX: Final = 199
_RETRY_EVERY: Final = 8
"""Every such transfer is sent a second time under its old key, as after a lost answer."""
_LIVE_SECONDS: Final = 15.0
"""How long the subscribers may take to see what is already booked."""


@dataclass(frozen=True, slots=True)
class Wallet:
    """An account, its owner, and the token that the owner acts with."""

    name: str
    token: str
    account_id: str


@dataclass(slots=True)
class _Story:
    api: Api
    screen: Screen
    issue: Issue
    run: str
    acknowledged: list[str]
    """Transactions that the server has said it booked, once for each intention."""

    async def book(self, wallet: Wallet, document: str, request: Json, token: str) -> Json:
        """Send a request that must be booked, and note its transaction."""
        answer = await self.api.execute(token, document, {"input": request})
        if answer["userErrors"]:
            raise ServerTroubleError(
                f"The server refused {wallet.name}'s request: {answer['userErrors'][0]['message']}"
            )
        self.acknowledged.append(answer["transaction"]["id"])
        return answer


@dataclass(slots=True)
class _Seen:
    """What the subscriptions have delivered."""

    lines: list[Line] = field(default_factory=list[Line])
    """The merchant's entries."""
    sequences: dict[str, int] = field(default_factory=dict[str, int])
    """How many entries the last balance of each wallet covers, by its id."""
    arrival: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, line: Line) -> None:
        self.lines.append(line)
        self.arrival.set()

    def cover(self, account_id: str, sequence: int) -> None:
        self.sequences[account_id] = sequence
        self.arrival.set()

    async def wait_for(self, lines: int, sequences: Mapping[str, int]) -> None:
        """Give the subscribers time to see what is booked; whether they did is proved later."""

        def is_behind() -> bool:
            return len(self.lines) < lines or any(
                self.sequences.get(account_id, 0) < sequence
                for account_id, sequence in sequences.items()
            )

        with suppress(TimeoutError):
            async with asyncio.timeout(_LIVE_SECONDS):
                while is_behind():
                    self.arrival.clear()
                    await self.arrival.wait()


async def play(api: Api, screen: Screen, issue: Issue) -> bool:
    """Play the story; tells whether every proof holds. Raises ServerTroubleError."""
    await api.check_served()
    story = _Story(api, screen, issue, secrets.token_hex(4), [])
    await api.check_known(issue(f"demo-{story.run}", ["WALLET"]))
    screen.act("Three people and a bakery open wallets")
    wallets = [await _open(story, name) for name in (*_PEOPLE, _MERCHANT)]
    people, merchant = wallets[:-1], wallets[-1]
    seen = _Seen()
    async with _watching(story, wallets, merchant, seen):
        screen.act("Money comes in")
        for wallet in people:
            await _deposit(story, wallet, _PEOPLE[wallet.name])
        screen.act(f"{TRANSFERS} transfers at once, some of them sent twice")
        with screen.moving():
            replays = await _transfer_all(story, people, merchant)
            statements = await _read_all(story, wallets)
            booked = {
                wallet.account_id: len(statement.lines)
                for wallet, statement in zip(wallets, statements, strict=True)
            }
            await seen.wait_for(booked[merchant.account_id], booked)
        screen.say(
            f"{replays} were sent again under their old keys, each answered with the first booking; "
            f"{api.retries} because the network or the server asked for it."
        )
        refusals_right = await _try_to_cheat(story, people)
    screen.act("The proof, from the API alone")
    screen.say(
        f"Booked were {TRANSFERS} transfers, {len(people)} deposits, and the first request of the key that was used twice."
    )
    statements = await _read_all(story, wallets)
    proofs = prove(
        statements,
        deposited=sum(_PEOPLE.values()),
        acknowledged=story.acknowledged,
        live=seen.lines,
        watched=statements[-1],
    )
    screen.show_balances(
        {
            wallet.name: statement.balance_shown
            for wallet, statement in zip(wallets, statements, strict=True)
        }
    )
    screen.show_proofs(proofs)
    return refusals_right and all(proof.holds for proof in proofs)


async def _read_all(story: _Story, wallets: Sequence[Wallet]) -> list[Statement]:
    return [await read_statement(story.api, each.token, each.account_id) for each in wallets]


async def _open(story: _Story, name: str) -> Wallet:
    subject = f"{name.lower()}-{story.run}"
    token = story.issue(subject, ["WALLET"])
    request = {
        "idempotencyKey": f"open-{story.run}",
        "currency": CURRENCY,
        "code": f"demo:{story.run}:{name.lower()}",
    }
    answer = await story.api.execute(token, OPEN_ACCOUNT, {"input": request})
    if answer["account"] is None:
        raise ServerTroubleError(f"The server refused to open a wallet: {answer['userErrors']}")
    story.screen.say(f"{name} is [bold]{answer['account']['code']}[/]")
    return Wallet(name, token, answer["account"]["id"])


async def _deposit(story: _Story, wallet: Wallet, minor_units: int) -> None:
    request: Json = {
        "idempotencyKey": f"deposit-{story.run}-{wallet.name}",
        "accountId": wallet.account_id,
        "amount": _amount(minor_units),
        "description": f"{wallet.name}'s salary",
    }
    await story.book(wallet, DEPOSIT, request, story.issue(f"bank-{story.run}", ["OPERATE"]))
    story.screen.say(f"{wallet.name} receives {in_reais(minor_units)}")


async def _transfer_all(story: _Story, people: Sequence[Wallet], merchant: Wallet) -> int:
    """Make all transfers, many at a time; returns how many were sent a second time and answered as replays."""
    task = story.screen.progress.add_task("transfers", total=TRANSFERS)
    places = asyncio.Semaphore(CONCURRENCY)
    replays = 0

    async def one(number: int) -> None:
        nonlocal replays
        payer = random.choice(people)  # noqa: S311 - a story, not a secret
        payee = random.choice([each for each in (*people, merchant) if each is not payer])  # noqa: S311 - see above
        request = _transfer(story, payer, payee, random.randint(1, _AMOUNT_MAX), f"{number}")  # noqa: S311 - see above
        async with places:
            answer = await story.book(payer, TRANSFER, request, payer.token)
            if number % _RETRY_EVERY == 0:
                again = await story.api.execute(payer.token, TRANSFER, {"input": request})
                if not again["replayed"] or again["transaction"] != answer["transaction"]:
                    raise ServerTroubleError("The server booked one intention twice.")
                replays += 1
        story.screen.progress.advance(task)

    async with asyncio.TaskGroup() as tasks:
        for number in range(TRANSFERS):
            tasks.create_task(one(number))
    return replays


async def _try_to_cheat(story: _Story, people: Sequence[Wallet]) -> bool:
    """Spend more than there is, and use a key twice; tells whether both were refused as they should be."""
    ana, bruno, carla = people
    screen = story.screen
    screen.act("Two requests that must be refused")
    overdraft = _transfer(story, carla, ana, sum(_PEOPLE.values()) + 1, "overdraft")
    answer = await story.api.execute(carla.token, TRANSFER, {"input": overdraft})
    missing = _refusal(answer, "INSUFFICIENT_FUNDS")
    if missing is not None:
        screen.say(
            f"Carla spends {missing['required']['decimal']}: [yellow]{missing['code']}[/], "
            f"she has {missing['available']['decimal']}, {missing['shortfall']['decimal']} short"
        )
    first = _transfer(story, ana, bruno, 100, "twice")
    await story.book(ana, TRANSFER, first, ana.token)
    answer = await story.api.execute(
        ana.token, TRANSFER, {"input": {**first, "amount": _amount(10_000)}}
    )
    conflict = _refusal(answer, "IDEMPOTENCY_CONFLICT")
    if conflict is not None:
        screen.say(
            f"Ana uses a key again for another amount: [yellow]{conflict['code']}[/], "
            f"differing: {', '.join(conflict['differingFields'])}"
        )
    if missing is None or conflict is None:
        screen.say("[bold red]One of them was not refused.[/]")
    return missing is not None and conflict is not None


def _refusal(answer: Json, code: str) -> Json | None:
    """Find the refusal with this code in an answer that has booked nothing."""
    refusals: list[Json] = answer["userErrors"]
    if answer["transaction"] is not None:
        return None
    return next((each for each in refusals if each["code"] == code), None)


@asynccontextmanager
async def _watching(
    story: _Story, wallets: Sequence[Wallet], merchant: Wallet, seen: _Seen
) -> AsyncGenerator[None]:
    """Show what subscriptions deliver for as long as the block lasts: the merchant's entries, and all balances."""
    names = {wallet.account_id: wallet.name for wallet in wallets}
    auditor = story.issue(f"dashboard-{story.run}", ["AUDIT"])

    async def entries() -> None:
        feed = story.api.live(merchant.token, ENTRY_POSTED, {"id": merchant.account_id})
        async for message in feed:
            seen.add(Line.of(message["entry"]))
            story.screen.show_entry(merchant.name, message["entry"])

    async def balances() -> None:
        async for message in story.api.live(auditor, BALANCE_CHANGED, {"ids": [*names]}):
            name = names[message["account"]["id"]]
            story.screen.balances[name] = money(message["balance"]["available"])
            seen.cover(message["account"]["id"], int(message["balance"]["sequence"]))

    story.screen.balances.update(dict.fromkeys(names.values(), ""))
    async with asyncio.TaskGroup() as tasks:
        watchers = [tasks.create_task(entries()), tasks.create_task(balances())]
        yield
        for watcher in watchers:
            watcher.cancel()


def _transfer(story: _Story, payer: Wallet, payee: Wallet, minor_units: int, what: str) -> Json:
    return {
        "idempotencyKey": f"transfer-{story.run}-{what}",
        "fromAccountId": payer.account_id,
        "toAccountId": payee.account_id,
        "amount": _amount(minor_units),
        "description": f"{payer.name} pays {payee.name}",
    }


def _amount(minor_units: int) -> Json:
    return {"minorUnits": str(minor_units), "currency": CURRENCY}
