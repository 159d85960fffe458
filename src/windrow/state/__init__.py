"""What survives a crash: chunks of state, the manifest that names them, the log of manifests.

Tasks write immutable files and never change one. A commit is the creation of one more manifest, which names
everything that is live; what no kept manifest names does not exist. So a crash at any point leaves either the
commit before or the commit after.

Read `store` (the few file operations all rests on) and `object_store` (the same in S3 and its like), `names`
and `chunk` (files of Arrow tables), `manifest` (what a commit says), `history` and `log` (commits in a row,
by one engine at a time), then `shard` (which chunks are needed).
"""
