"""Asks an engine the questions of a file of JSON, and prints its answers as JSON.

ask.py spark|clickhouse|duckdb QUESTIONS
"""

import json
import os
import sys
from datetime import UTC, datetime


def read_so_far():
    """Bytes that this process and its descendants have read, by the kernel."""
    parents, all_bytes = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                parents[int(pid)] = int(stat.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{pid}/io") as io:
                all_bytes[int(pid)] = int(io.readline().split()[1])
        except OSError:
            pass  # it has ended, or is another user's

    def ours(pid):
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return sum(n for pid, n in all_bytes.items() if ours(pid))


class DuckDB:
    # A time is a BIGINT of nanoseconds in answers.
    ns = "epoch_ns(time)"
    quantile = "quantile_cont({}, {})"

    def __init__(self, q):
        import duckdb

        self.db = duckdb.connect()
        self.db.execute("SET TimeZone = 'UTC'")
        self.lake = f"read_parquet('{q['lake']}/*/*/*.parquet', union_by_name=true)"
        names = ",".join(f"'{name}'" for name in q["names"])
        self.blobs = (
            f"(SELECT ts AS time, * FROM read_ndjson([{names}], compression='zstd', columns="
            "{ts: 'TIMESTAMP_NS', level: 'VARCHAR', service: 'VARCHAR', duration_ms: 'DOUBLE', request_id: 'VARCHAR', user_id: 'VARCHAR'}))"
        )

    def at(self, ns):
        return f"'{datetime.fromtimestamp(ns // 10**9, UTC)}'"

    def rows(self, sql):
        return self.db.execute(sql).fetchall()


class ClickHouse:
    ns = "toUnixTimestamp64Nano(time)"
    quantile = "quantileExactInclusive({1})({0})"

    def __init__(self, q):
        from chdb import session

        self.db = session.Session()
        # Maps of files into memory are no reads.
        self.db.query("SET storage_file_read_method = 'pread', session_timezone = 'UTC'")
        self.lake = f"file('{q['lake']}/*/*/*.parquet', 'Parquet')"
        self.blobs = (
            "(SELECT parseDateTime64BestEffort(ts, 9, 'UTC') AS time, * FROM "
            f"file('{{{','.join(q['names'])}}}', 'JSONEachRow', "
            "'ts String, level String, service String, duration_ms Float64, request_id String, user_id String', 'zstd'))"
        )

    def at(self, ns):
        return f"fromUnixTimestamp64Nano({ns}, 'UTC')"

    def rows(self, sql):
        text = str(self.db.query(sql, "JSONCompactEachRow"))
        return [[int(v) if isinstance(v, str) and v.isdigit() else v for v in json.loads(line)] for line in text.splitlines()]


class Spark:
    ns = "time"
    quantile = "percentile({}, {})"
    blobs = None

    def __init__(self, q):
        import pyspark
        from pyspark.sql import SparkSession

        os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        self.db = (
            SparkSession.builder.master("local-cluster[3,1,1024]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "3")
            .config("spark.sql.warehouse.dir", os.path.join(os.getcwd(), "warehouse"))
            .config("spark.sql.session.timeZone", "UTC")
            .getOrCreate()
        )
        self.db.sparkContext.setLogLevel("ERROR")
        # With a schema it needs no setting for nanoseconds, and merges none.
        self.db.read.schema(
            "time BIGINT, level STRING, service STRING, message STRING, status BIGINT, duration_ms DOUBLE, "
            "request_id STRING, user_id STRING, date DATE"
        ).parquet(q["lake"]).createOrReplaceTempView("lake")
        self.lake = "lake"

    def at(self, ns):
        return str(ns)

    def rows(self, sql):
        return [list(row) for row in self.db.sql(sql).collect()]


def main():
    engine = {"duckdb": DuckDB, "clickhouse": ClickHouse, "spark": Spark}[sys.argv[1]]
    with open(sys.argv[2]) as file:
        q = json.load(file)
    e = engine(q)
    low, high = (e.quantile.format("duration_ms", p) for p in (0.5, 0.99))
    hour = f"time >= {e.at(q['hour'])} AND time < {e.at(q['hour'] + 3600 * 10**9)}"
    day = f"service = '{q['service']}' AND date = '{q['date']}'"

    def questions(table):
        return {
            "counts": f"SELECT service, level, h * 3600, count(*) AS n FROM (SELECT service, level, "
            f"CAST(floor({e.ns} / 3600000000000) AS BIGINT) AS h FROM {table} AS t) AS t GROUP BY service, level, h",
            "quantiles": f"SELECT service, {low}, {high} FROM {table} AS t GROUP BY service",
            "join": f"SELECT count(*) FROM (SELECT user_id FROM {table} AS t WHERE service = '{q['service']}' AND level = 'critical') AS a "
            f"JOIN (SELECT user_id FROM {table} AS t WHERE service = '{q['other']}' AND level = 'error') AS b ON a.user_id = b.user_id",
            "id": f"SELECT {e.ns}, level, service FROM {table} AS t WHERE request_id = '{q['id']}'",
            "nosuch": f"SELECT {e.ns}, level, service FROM {table} AS t WHERE request_id = '{q['nosuch']}'",
        }

    parquet = questions(e.lake) | {
        "two": f"SELECT level, count(*), sum(status) FROM {e.lake} AS t GROUP BY level",
        "hour": f"SELECT count(*), count(message) FROM {e.lake} AS t WHERE {hour} AND length(message) > 0",
        "day": f"SELECT count(*), count(message) FROM {e.lake} AS t WHERE {day} AND length(message) > 0",
        "all": f"SELECT count(*), max(length(message)) FROM {e.lake} AS t WHERE length(message) > 0",
    }
    e.rows(parquet["counts"])  # what is read once: programs, footers, settings
    out = {"parquet": {}, "bytes": {}, "blobs": {}}
    for name, sql in parquet.items():
        before = read_so_far()
        out["parquet"][name] = e.rows(sql)
        out["bytes"][name] = read_so_far() - before
    if e.blobs:
        out["blobs"] = {name: e.rows(sql) for name, sql in questions(e.blobs).items()}
    json.dump(out, sys.stdout)
    if isinstance(e, Spark):
        e.db.stop()


main()
