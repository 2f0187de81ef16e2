"""Reading of data files of all formats; each failure is a `DataError` with file, line and column."""
