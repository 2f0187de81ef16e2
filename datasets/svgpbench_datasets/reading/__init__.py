"""Files of every format to arrays, each failure with its file, line and column."""
