"""What people see: words, charts and the report.

words, sentences   numbers, names and findings as a reader wants them
pieces, charts     charts, drawn with Altair; what ``.plot()`` returns
report             one page that needs nothing else: its numbers first, its drawing second

It measures nothing itself and knows neither estimators nor the command line, which both may use it.
"""
