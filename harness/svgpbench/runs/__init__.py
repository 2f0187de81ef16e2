"""From cells to records: a scheduler, its worker processes, and Dask clusters."""
