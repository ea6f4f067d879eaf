"""Output for people: words, charts and the report page.

Content is computed first and rendered second; the same input gives the same bytes. Must not import estimators or
commands.
"""
