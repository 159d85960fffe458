"""Parts of the printer: names, window brackets, and which SELECT a plan is."""
