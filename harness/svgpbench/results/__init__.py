"""Records of cells: their files, merging and validity, and the data frames that are made of them."""
