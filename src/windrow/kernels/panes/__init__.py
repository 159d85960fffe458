"""Kernels of aggregates over periodic windows: states of panes, and windows made of them."""
