"""What mutations are given, turned into the ledger's commands."""
