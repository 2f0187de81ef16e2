"""Which natural-gradient steps live through a thousand minibatches, ours and those of other libraries."""
