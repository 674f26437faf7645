"""G01: numbers beyond 32 bits on their way through queries, pages and feeds."""

from tests.schema.server import ApiServer, account_id
from tests.support.ledger import Wallet, posted
from tests.support.postgres import TestDatabase, connect

HIGH = 2**31 + 5


async def aged(server: ApiServer, database: TestDatabase) -> Wallet:
    """Open a wallet of thirty million whose history has passed 2^31 entries."""
    wallet = await server.books.wallet("alice", 1)
    async with connect(database.superuser_url) as connection:
        # No role of Saldo's may do this: the triggers refuse to change an entry, or to number one out of turn.
        await connection.execute("set session_replication_role = replica")
        await connection.execute(
            "update entry set sequence = $1 where account_id = $2", HIGH, wallet.id
        )
        await connection.execute("update account set sequence = $1 where id = $2", HIGH, wallet.id)
    posted(await server.books.deposit(wallet.account, 3_000_000_000_00 - 1))
    return wallet


async def test_g01_amounts_and_sequences_beyond_32_bits_arrive_whole(
    server: ApiServer, database_url: TestDatabase
) -> None:
    alice = await aged(server, database_url)
    page = """
    query ($id: ID!, $after: String) {
      account(id: $id) {
        balance { posted { minorUnits decimal } sequence }
        entries(first: 1, after: $after) {
          totalCount edges { cursor node { id sequence amount { minorUnits } } }
        }
      }
    }
    """

    account = (await server.ask(page, id=account_id(alice)))["account"]

    assert account["balance"] == {
        "posted": {"minorUnits": "300000000000", "decimal": "300000000000"},
        "sequence": str(HIGH + 1),
    }
    (edge,) = account["entries"]["edges"]
    assert edge["node"]["sequence"] == str(HIGH + 1)
    assert edge["node"]["amount"] == {"minorUnits": "299999999999"}
    assert account["entries"]["totalCount"] == str(HIGH + 1)
    node = await server.ask(
        "query ($id: ID!) { node(id: $id) { ... on Entry { sequence } } }", id=edge["node"]["id"]
    )
    assert node == {"node": {"sequence": str(HIGH + 1)}}
    older = await server.ask(page, id=account_id(alice), after=edge["cursor"])
    (oldest,) = older["account"]["entries"]["edges"]
    assert oldest["node"]["sequence"] == str(HIGH)

    async with server.socket() as socket:
        await socket.subscribe(
            "subscription ($id: ID!, $after: String) {"
            " entryPosted(accountId: $id, after: $after) { entry { sequence } } }",
            id=account_id(alice),
            after=edge["cursor"],
        )
        posted(await server.books.deposit(alice.account, 1))
        event = await socket.next()
        assert event["entryPosted"]["entry"] == {"sequence": str(HIGH + 2)}
