"""Windows that are kept to be asked: on disk, and while they slide.

archive.py        an archive: rows with lifetimes on disk, found by a key
snapshot.py       reading one state of it
declaration.py    what an archive is told
partitioning.py, allocation.py    into which sub-index a row goes
upkeep.py         how a sub-index takes in new rows and lets go of expired ones
piece.py, search.py, rows.py      files, what is searched in them, what may be put in
isolation/        reading a window that slides meanwhile
"""

from windrow.archive.archive import Archive, Updated
from windrow.archive.declaration import Declaration
from windrow.archive.snapshot import Snapshot, read_archive

__all__ = ["Archive", "Declaration", "Snapshot", "Updated", "read_archive"]
