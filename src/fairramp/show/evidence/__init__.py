"""Evidence: a folder for an auditor, with impact ratios and the technical facts that the EU AI Act lists.

content.py     every number and fact, as plain data
make.py        computes it
annex.py       the points of Annex IV: facts, and questions where the library knows none
documents.py   the files as text
folder.py      the folder, before it is written
"""

from fairramp.show.evidence.folder import Evidence
from fairramp.show.evidence.make import evidence

__all__ = ["Evidence", "evidence"]
