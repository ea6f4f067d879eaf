"""The explorer: a local page on which an analyst looks for a rule.

columns.py    what the file has, and which columns are probably meant
asked.py      what the page asks for: columns and settings, checked
explorer.py   the rows in memory, and the rule at each move
save.py       the rule, its report and the commands that make both, as files
guard.py      who may ask: only the page with this address, from this machine
app.py        the pages and the answers
"""
