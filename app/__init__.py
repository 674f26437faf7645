"""Saldo: a double-entry wallet ledger on PostgreSQL behind a GraphQL API with live subscriptions."""
