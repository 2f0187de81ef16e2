"""Training to quality: the seconds in which a run reaches a test NLPD, ours beside the peer libraries."""
