"""Local web programs: `explore` looks for a rule, `serve` answers with one; starlette, uvicorn (extra `web`).

Must not import commands.
"""
