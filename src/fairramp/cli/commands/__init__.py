"""The commands, sorted by what they take, thin: read, call the library, show, write.

Imports of anything heavy stand inside the functions, so that `fairramp --help` is instant.
"""
