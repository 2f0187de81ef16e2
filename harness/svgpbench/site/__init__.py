"""Static site of the records of a folder: HTML pages that open from the file system."""
