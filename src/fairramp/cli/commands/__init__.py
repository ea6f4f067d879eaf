"""One module per command: read, call the library, print, write.

Heavy imports are inside the functions, to keep `fairramp --help` instant.
"""
