"""What runs in Spark's Python workers: Arrow batches in, files and short reports out, no Spark imported."""
