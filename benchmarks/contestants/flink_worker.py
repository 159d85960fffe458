"""The process that PyFlink runs in: statements in as lines of JSON, seconds out, the JVM warm in between.

It is run by the Python of PyFlink's own environment, where there is no windrow: it imports nothing of it.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module

#: what marks the lines of answers among whatever Flink prints
ANSWER = "windrow-bench "


def main() -> None:
    """Answer each line of standard input until it ends."""
    table = import_module("pyflink.table")
    environment = table.TableEnvironment.create(table.EnvironmentSettings.in_streaming_mode())
    for line in sys.stdin:
        job = json.loads(line)
        for name, value in job["settings"].items():
            environment.get_config().set(name, value)
        began = time.perf_counter()
        for statement in job["before"]:
            environment.execute_sql(statement)
        statements = environment.create_statement_set()
        for insert in job["inserts"]:
            statements.add_insert_sql(insert)
        statements.execute().wait()
        seconds = time.perf_counter() - began
        for statement in job["after"]:
            environment.execute_sql(statement)
        sys.stdout.write(f"{ANSWER}{json.dumps({'seconds': seconds})}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
