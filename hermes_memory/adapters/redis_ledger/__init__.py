"""The ledger in Redis: the system of record of a cluster (ARCHITECTURE §3)."""

from hermes_memory.adapters.redis_ledger.connection import Redis
from hermes_memory.adapters.redis_ledger.ledger import RedisLedger

__all__ = ["Redis", "RedisLedger"]
