"""The ledger: accounts, postings and their history, exact and append only."""
