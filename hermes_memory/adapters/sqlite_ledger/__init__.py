"""The ledger in one SQLite file: the default of an embedded installation (ARCHITECTURE §3)."""

from hermes_memory.adapters.sqlite_ledger.ledger import SqliteLedger

__all__ = ["SqliteLedger"]
