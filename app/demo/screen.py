"""What the story looks like: a scroll of live changes above a table of balances and a progress bar."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from app.demo.api import Json
from app.demo.proofs import Proof

_NAME_WIDTH: Final = 9
"""Of the longest name in the story."""


def money(amount: Json) -> str:
    """Write an amount as the API does for people."""
    return f"{amount['decimal']} {amount['currency']}"


@dataclass(slots=True)
class Screen:
    """Shows the story on a console; without a terminal it is plain text without moving parts."""

    console: Console
    balances: dict[str, str] = field(default_factory=dict[str, str])
    """What each wallet shows now, by name."""
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
        )

    def act(self, title: str) -> None:
        """Begin a part of the story."""
        self.console.print()
        self.console.rule(f"[bold]{title}", align="left")

    def say(self, text: str) -> None:
        """Tell something; square brackets are markup."""
        self.console.print(text)

    def moving(self) -> AbstractContextManager[object]:
        """Show balances and progress at the bottom for as long as the block lasts."""
        return Live(get_renderable=self._bottom, console=self.console, refresh_per_second=10)

    def show_entry(self, name: str, entry: Json) -> None:
        """Show an entry that a subscription has just delivered."""
        amount = money(entry["amount"])
        colour = "red" if amount.startswith("-") else "green"
        self.console.print(
            f"[dim]live[/] {name:<{_NAME_WIDTH}} [dim]{'#' + entry['sequence']:<4}[/] "
            f"[{colour}]{amount:>12}[/] → {money(entry['balanceAfter']):>14}  "
            f"[dim]{entry['transaction']['description'] or entry['transaction']['type']}[/]",
            highlight=False,
        )

    def show_balances(self, balances: Mapping[str, str]) -> None:
        """Show what the wallets hold at the end."""
        self.console.print(_balance_table(balances))

    def show_proofs(self, proofs: Sequence[Proof]) -> None:
        """Show what was proved, and what wasn't; the figures have a line of their own, so that 80 columns are enough."""
        table = Table(show_header=False, box=None, padding=(0, 1, 0, 0))
        for proof in proofs:
            mark = "[bold green]✓[/]" if proof.holds else "[bold red]✗[/]"
            table.add_row(mark, f"{proof.claim}\n[dim]{proof.figures}[/]")
        self.console.print(table)

    def _bottom(self) -> RenderableType:
        return Group(_balance_table(self.balances), self.progress)


def _balance_table(balances: Mapping[str, str]) -> Table:
    table = Table(title="Wallets", title_justify="left", title_style="bold")
    table.add_column("Owner")
    table.add_column("Available", justify="right", style="cyan")
    for name, balance in balances.items():
        table.add_row(name, balance)
    return table
