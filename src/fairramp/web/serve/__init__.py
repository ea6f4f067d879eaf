"""`fairramp serve`: a rule over HTTP.

    request → guards (Host, token, size, time) → people → rule.chances → decisions by id and key → JSON

`service` is an ASGI application with a few fixed paths, `people` reads the people of a request, `openapi`
describes both, `page` shows the description to people, `counts` adds up over workers, `protocol` watches the
clock of every connection, and `run` starts and stops processes.
"""
