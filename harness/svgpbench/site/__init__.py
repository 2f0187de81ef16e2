"""All that the records of a folder say, as one folder of pages that opens from the file system."""
