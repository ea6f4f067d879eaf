"""For scripts that were written for other libraries: their names and arguments, our estimator.

Each is a module, imported by name, and only translates; what it cannot translate it refuses, with what to use.
"""
