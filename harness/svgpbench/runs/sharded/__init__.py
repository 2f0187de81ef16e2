"""The full-batch dual E-step and its bound as sums over shards of a table larger than memory."""

from svgpbench.runs.sharded.climb import ShardedRun, climb
from svgpbench.runs.sharded.shards import Columns, Shard, shards_of

__all__ = ["Columns", "Shard", "ShardedRun", "climb", "shards_of"]
