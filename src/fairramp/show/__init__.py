"""What people see: words, charts, the report page.

Content first, rendering second; the same input gives the same bytes. May not know estimators or commands.
"""
