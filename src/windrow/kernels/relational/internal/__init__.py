"""INTERNAL windows: results that outlive the windows they were made from."""
