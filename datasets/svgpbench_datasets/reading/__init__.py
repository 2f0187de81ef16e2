"""Files of every format to arrays, each failure a `DataError` with its file, line and column."""
