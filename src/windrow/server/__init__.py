"""The engine with an HTTP API, a live page and metrics.

answers     the log of what queries answered, which clients read at their own pace
service     what can be done: statements, SELECTs, rows; and the run in the background
watch       what is seen of an engine after its epochs, for the page and for metrics
access      who may do what: tokens, roles, origins
app         the routes, on FastAPI
serve       uvicorn around it
"""
