"""The full-batch dual E-step and its bound as sums over shards of a table larger than memory."""

from svgpbench.runs.sharded.climb import ShardedRun, climb
from svgpbench.runs.sharded.shards import Shard, TableColumns, shards_of

__all__ = ["Shard", "ShardedRun", "TableColumns", "climb", "shards_of"]
