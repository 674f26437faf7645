"""The types of the API: what a client sees of the ledger's values, made from them without reading anything more."""
