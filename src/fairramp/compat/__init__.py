"""Doors for scripts that were written for other libraries; each is a module, imported by name."""
