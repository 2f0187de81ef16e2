"""Statistics over data sets: paired differences with intervals, ranks, convergence of a bound."""
