"""Time to target: seconds of training until a test NLPD is reached, ours beside the peer libraries."""
