"""Windows that are kept to be asked: on disk, and while they slide.

archive.py        an archive: rows with lifetimes on disk, found by a key
snapshot.py       reading one state of it
declaration.py    what an archive is told, and into which sub-index a row goes
layout.py         which layout to take, by what is said or by the least work
upkeep.py         how a sub-index takes in new rows and lets go of expired ones
piece.py, search.py      files, and what is searched in them
isolation.py      reading a window that slides meanwhile
"""

from windrow.archive.archive import Archive, Updated
from windrow.archive.declaration import Declaration
from windrow.archive.snapshot import Snapshot, read_archive

__all__ = ["Archive", "Declaration", "Snapshot", "Updated", "read_archive"]
