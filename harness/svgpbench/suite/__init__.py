"""The suite: fixed problems, one protocol for every entrant, and the board that follows from their runs."""
