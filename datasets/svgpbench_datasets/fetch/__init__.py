"""Download, verification and caching of data files; only this part of the package uses the network."""
