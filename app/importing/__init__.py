"""Opening balances from a file: read, checked as a whole, booked, and compared with the ledger at the end.

Shape. `sheet` reads the file and judges each row by itself; `checks` judges the rows together and beside the accounts that
are there already; `comparison` says where file and ledger differ. These three are pure. `run` asks the ledger and has it
book, by nothing but the ledger's own commands.

Promises. Nothing is booked where anything is wrong with the file. What was booked is never booked again: not by a second
run, not by an edited file, not by two runs at once. A run that was killed is gone on with by the next one.
"""

from app.importing.comparison import Comparison, Difference, Total
from app.importing.run import ROWS_AT_ONCE, FaultyFileError, Import, Plan, Tally
from app.importing.sheet import COLUMNS, Fault, Row, Sheet, read_sheet

__all__ = [
    "COLUMNS",
    "ROWS_AT_ONCE",
    "Comparison",
    "Difference",
    "Fault",
    "FaultyFileError",
    "Import",
    "Plan",
    "Row",
    "Sheet",
    "Tally",
    "Total",
    "read_sheet",
]
