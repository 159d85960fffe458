"""When queries are refreshed (thesis, 8.4): together where that saves work, and late rather than never."""
