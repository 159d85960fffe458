"""The names of files in a state directory; a name says for which commit, and by which owner, a file was made.

    commits/000000000007.json                          the manifest of commit 7
    owners/000002.json, owners/000002.released         owner epoch 2, and that it ended in order
    owners/000002.lease                                the last sign of life of owner 2, without locks
    owners/floor                                       the oldest commit that is kept
    owners/lock                                        held by the living owner
    chunks/000000000007-000002-s0003-5f0c9a1e.chunk    state of shard 3, made for commit 7 under owner 2
    outbox/000000000007-000002-s0003-77d1b2c4.chunk    output, likewise
    chunks/000000000007-000002-s0003-09fb21c4.parquet  a part of an archive: sub-index 3 instead of a shard
    chunks/000000000007-000002-driver-81be55aa.parquet kept rows of a stream: a sub-window

    checkpoints/bids/                                  Spark's own notes on a streaming frame
    archives/past-5f0c9a1e/                            archive `past`, with commits of its own

Names of chunks end in random digits: two attempts of one task never write to the same file. The name of a
stream, query or archive becomes part of a path in one way only, `file_name`, whatever it consists of.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from hashlib import blake2b

COMMITS, OWNERS, CHUNKS, OUTBOX, TEMPORARY = "commits", "owners", "chunks", "outbox", "tmp"
FOLDERS = (COMMITS, OWNERS, CHUNKS, OUTBOX, TEMPORARY)
LOCK, FLOOR = f"{OWNERS}/lock", f"{OWNERS}/floor"
#: what a server was told over HTTP, where its log of answers may be on another machine
STATEMENTS = f"{OWNERS}/statements"
#: beside them: what Spark and archives keep, a directory for each
CHECKPOINTS, ARCHIVES = "checkpoints", "archives"
#: begins what the engine files under a name that it made itself; no declared name has a control character
RESERVED = "\x1f"

#: in place of a shard: what belongs to the engine as a whole (contents of tables, lists of consumed files)
DRIVER = -1
#: kept sub-windows of streams, the last answers of queries, and what sources remember one by one
KEPT, ANSWERS, KEYS = -2, -3, -4

_CHUNK = re.compile(r"(chunks|outbox)/(\d{12,})-(\d{6,})-(?:s(\d{4,})|driver)-([0-9a-z]+)\.(chunk|parquet)")
_COMMIT = re.compile(rf"{COMMITS}/(\d{{12,}})\.json")
_OWNER = re.compile(rf"{OWNERS}/(\d{{6,}})\.json")
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")
_LEGIBLE = 32


@dataclass(frozen=True)
class ChunkName:
    """What the name of a chunk tells.

    >>> name = ChunkName(commit=7, owner=2, shard=3, token="5f0c9a1e")
    >>> str(name)
    'chunks/000000000007-000002-s0003-5f0c9a1e.chunk'
    >>> ChunkName.parse(str(name)) == name
    True
    """

    commit: int
    owner: int
    shard: int
    token: str
    folder: str = CHUNKS
    suffix: str = "chunk"

    def __str__(self) -> str:
        shard = "driver" if self.shard == DRIVER else f"s{self.shard:04d}"
        return f"{self.folder}/{self.commit:012d}-{self.owner:06d}-{shard}-{self.token}.{self.suffix}"

    @classmethod
    def parse(cls, name: str) -> ChunkName | None:
        found = _CHUNK.fullmatch(name)
        if not found:
            return None
        folder, commit, owner, shard, token, suffix = found.groups()
        return cls(int(commit), int(owner), DRIVER if shard is None else int(shard), token, folder, suffix)


def new_chunk_name(commit: int, owner: int, shard: int, folder: str = CHUNKS, suffix: str = "chunk") -> str:
    """A name nobody else has, for a chunk that commit `commit` is going to name."""
    return str(ChunkName(commit, owner, shard, secrets.token_hex(5), folder, suffix))


def commit_name(number: int) -> str:
    return f"{COMMITS}/{number:012d}.json"


def commit_number(name: str) -> int | None:
    """Which commit a file is the manifest of, if it is one.

    >>> commit_number(commit_name(7)), commit_number("commits/notes.txt")
    (7, None)
    """
    found = _COMMIT.fullmatch(name)
    return int(found[1]) if found else None


def owner_name(epoch: int, end: str = "json") -> str:
    """Where an owner tells who it is, with other ends that it lives (`lease`), or ended (`released`)."""
    return f"{OWNERS}/{epoch:06d}.{end}"


def owner_epoch(name: str) -> int | None:
    found = _OWNER.fullmatch(name)
    return int(found[1]) if found else None


def file_name(name: str) -> str:
    """The name of a stream, query or archive as one part of a path.

    A plain name stays as it is. Of any other the legible part is kept, and a digest of all of it: so two
    names never meet in one file, not even where the disk takes small and capital letters for the same, and
    no name is too long, hidden, or leads to another folder.

    >>> file_name("top_bids"), file_name("Top Bids"), file_name("../../etc")
    ('top_bids', 'top_bids.06537ab0bd766517bfb5a160b48d6f7c', 'etc.82f0eec7e3ca6983963207f0fc827d10')
    """
    if _PLAIN.fullmatch(name):
        return name
    legible = _NOT_PLAIN.sub("_", name.lower()).strip("_")[:_LEGIBLE] or "name"
    return f"{legible}.{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"
