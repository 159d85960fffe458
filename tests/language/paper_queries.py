"""The queries of the papers, in Windrow's words, with the streams they are asked about.

WID is paper 000 (window ids), PANES 002 (No Pane, No Gain), DIVERSE 001 (diverse windows), THESIS 003
(sliding window query processing), SHEDDING 004 (window-aware load shedding). Attribute names with a
hyphen are written with an underscore; what the papers leave open (a window's length, a threshold) is
filled in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TRAFFIC = {"Traffic": "seg_id BIGINT, speed DOUBLE, ts TIMESTAMP"}
BIDS = {"bids": "item_id BIGINT, bid_price DOUBLE, ts TIMESTAMP"}
READINGS = {"Readings": "stationID BIGINT, Temperature DOUBLE, ts TIMESTAMP"}
STATIONS = {
    "P": "stationID BIGINT, humidity DOUBLE, ts TIMESTAMP",
    "S": "stationID BIGINT, temperature DOUBLE, ts TIMESTAMP",
}
TRACES = dict.fromkeys(
    ("NetTrace", "TraceA", "TraceB"),
    "protocol STRING, localIP STRING, remoteIP STRING, duration BIGINT, ts TIMESTAMP",
)
S_AND_T = {"S": "a BIGINT, b BIGINT, ts TIMESTAMP", "T": "a BIGINT, b BIGINT, ts TIMESTAMP"}
THREE = {f"S{number}": "a BIGINT, ts TIMESTAMP" for number in (1, 2, 3)}
LINKS = dict.fromkeys(
    ("Link1", "Link2", "Link3"),
    "source_IP_address STRING, destination_IP_address STRING, protocol STRING, ts TIMESTAMP",
)
PACKETS = {"S": "length BIGINT, protocol STRING, user STRING, ts TIMESTAMP"}
STOCKS = {"Stocks": "symbol STRING, price DOUBLE, ts TIMESTAMP"}


@dataclass(frozen=True)
class PaperQuery:
    """A query of a paper: its name there, the SQL, and what it is asked about."""

    name: str
    sql: str
    streams: dict[str, str]
    tables: dict[str, str | tuple[str, str]] = field(default_factory=dict)


WID = [
    PaperQuery(
        "WID Q1",
        """SELECT seg_id, max(speed), min(speed)
           FROM Traffic [RANGE 300 seconds SLIDE 60 seconds WATTR ts]
           GROUP BY seg_id""",
        TRAFFIC,
    ),
    PaperQuery(
        "WID Q2",
        """SELECT seg_id, count(*)
           FROM Traffic [RANGE 1000 rows SLIDE 10 rows WATTR row_num]
           GROUP BY seg_id""",
        TRAFFIC,
    ),
    PaperQuery(
        "WID Q3",
        """SELECT seg_id, count(*)
           FROM Traffic [RANGE 300 seconds RATTR ts SLIDE 1 row SATTR row_num]
           GROUP BY seg_id""",
        TRAFFIC,
    ),
    PaperQuery(
        "WID Q4",
        """SELECT seg_id, count(*)
           FROM Traffic [RANGE 1000 rows SLIDE 10 rows WATTR row_num PATTR seg_id]
           GROUP BY seg_id""",
        TRAFFIC,
    ),
    PaperQuery(
        "WID Q5",
        """SELECT seg_id, count(*)
           FROM Traffic [RANGE 300 seconds RATTR ts SLIDE 5 rows SATTR rank(ts)]
           GROUP BY seg_id""",
        TRAFFIC,
    ),
]

HYPHENS = {"Traffic": "`seg-id` BIGINT, speed DOUBLE, ts TIMESTAMP"}
TIMED = {"bids": "`bid-price` DOUBLE, timestamp TIMESTAMP"}

PRINTED = [
    PaperQuery(
        "WID Q2 as printed",
        """SELECT    seg-id, count(*)
           FROM      Traffic [RANGE 1000 rows
                             SLIDE 10 rows
                             WATTR row-num]
           GROUP BY seg-id""",
        HYPHENS,
    ),
    PaperQuery(
        "WID Q3 as printed",
        """SELECT    seg-id, count(*)
           FROM      Traffic [RANGE 300 seconds
                             RATTR ts
                             SLIDE 1 row
                             SATTR row-num]""",
        HYPHENS,
    ),
    PaperQuery(
        "WID Q4 as printed",
        """SELECT    seg-id, count(*)
           FROM      Traffic [RANGE 1000 rows
                             SLIDE 10 rows
                             WATTR row-num
                             PATTR seg-id]""",
        HYPHENS,
    ),
    PaperQuery(
        "WID Q5 as printed",
        """SELECT    seg-id, count(*)
           FROM      Traffic [RANGE 300 seconds
                             RATTR ts
                             SLIDE 5 rows
                             SATTR rank(ts)]""",
        HYPHENS,
    ),
    PaperQuery(
        "PANES Query 2 as printed",
        """SELECT max (bid-price)
           FROM bids [WATTR timestamp
           RANGE 4 minutes
           SLIDE 1 tuple]""",
        TIMED,
    ),
    PaperQuery(
        "THESIS 3.4, a sum of sums, as printed",
        """SELECT SUM(a)
           FROM (SELECT SUM(a) FROM Stream1[RANGE 6 sec SLIDE 6 sec INTERNAL]) [ROWS 10]""",
        {"Stream1": "a BIGINT, ts TIMESTAMP"},
    ),
]

PANES = [
    PaperQuery(
        "PANES Query 1: the highest bid of the past 4 minutes, every minute",
        "SELECT max(bid_price) FROM bids [WATTR ts RANGE 4 minutes SLIDE 1 minute]",
        BIDS,
    ),
    PaperQuery(
        "PANES Query 2: the highest bid of the past 4 minutes, at every bid",
        "SELECT max(bid_price) FROM bids [WATTR ts RANGE 4 minutes SLIDE 1 tuple SATTR row_num]",
        BIDS,
    ),
    PaperQuery(
        "PANES Query 3: how many bids on each item, window after GROUP BY",
        "SELECT count(*) FROM bids GROUP BY item_id [WATTR ts RANGE 4 minutes SLIDE 1 minute]",
        BIDS,
    ),
    PaperQuery(
        "PANES Query 4: items with at least 5% of all bids of the past 10 minutes",
        """SELECT each.item_id
           FROM (SELECT item_id, count(*) AS bids
                 FROM bids [RANGE 10 minutes SLIDE 1 minute] GROUP BY item_id) each,
                (SELECT count(*) AS bids FROM bids [RANGE 10 minutes SLIDE 1 minute]) total
           WHERE each.bids >= 0.05 * total.bids""",
        BIDS,
    ),
]

DIVERSE = [
    PaperQuery(
        "DIVERSE Q1: sliding average",
        "SELECT AVG(Temperature) FROM Readings [RANGE 60 MINUTES SLIDE 1 MINUTE]",
        READINGS,
    ),
    PaperQuery("DIVERSE Q2: monotonic selection", "SELECT * FROM Readings WHERE Temperature >= 30", READINGS),
    PaperQuery(
        "DIVERSE Q2': the same under a window",
        "SELECT * FROM Readings [RANGE 60 MINUTES SLIDE 1 MINUTE] WHERE Temperature >= 30",
        READINGS,
    ),
    PaperQuery(
        "DIVERSE Q3: landmark joined with sliding",
        """SELECT P.stationID, MAX(P.humidity), AVG(S.temperature)
           FROM P [UNBOUNDED START AT '07:00:00'], S [RANGE 60 MINUTES SLIDE 1 MINUTE]
           WHERE P.stationID = S.stationID AND S.Temperature >= 30
           GROUP BY P.stationID""",
        STATIONS,
    ),
    PaperQuery(
        "DIVERSE Q4: duplicate elimination",
        "SELECT DISTINCT protocol, localIP, remoteIP FROM NetTrace [RANGE 10 SECONDS SLIDE 2 SECONDS]",
        TRACES,
    ),
    PaperQuery(
        "DIVERSE Q5: progressive aggregate, tumbling",
        "SELECT localIP, SUM(duration) FROM NetTrace [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY localIP",
        TRACES,
    ),
    PaperQuery(
        "DIVERSE Q5: retrospective aggregate, count-based",
        "SELECT localIP, MAX(duration) FROM NetTrace [ROWS 1000] GROUP BY localIP",
        TRACES,
    ),
    PaperQuery(
        "DIVERSE Q6: join",
        """SELECT * FROM TraceA [RANGE 10 SECONDS], TraceB [ROWS 100 PARTITION BY remoteIP]
           WHERE TraceA.localIP = TraceB.remoteIP""",
        TRACES,
    ),
]

THESIS = [
    PaperQuery("THESIS 1.1: maximum of a stream", "SELECT MAX(a) FROM S", S_AND_T),
    PaperQuery("THESIS 1.1: maximum of a window", "SELECT MAX(a) FROM S [RANGE 1 min]", S_AND_T),
    PaperQuery(
        "THESIS 1.2: maximum of a join",
        "SELECT MAX(S.a) FROM S [RANGE 1 min], T [RANGE 1 min] WHERE S.b = T.b",
        S_AND_T,
    ),
    PaperQuery(
        "THESIS 2.1: Rstream of a join",
        "SELECT Rstream(*) FROM S1 [RANGE 1 min], S2 [RANGE 1 min] WHERE S1.a = S2.a",
        THREE,
    ),
    PaperQuery(
        "THESIS 3.4: the last ten results of a join",
        "SELECT Wstream(*)[ROWS 10] FROM S1 [RANGE 1 min], S2 [RANGE 1 min] WHERE S1.a = S2.a",
        THREE,
    ),
    PaperQuery(
        "THESIS 3.4: sums of chunks, nested",
        """SELECT SUM(chunk)
           FROM (SELECT SUM(a) AS chunk FROM S1 [RANGE 6 sec SLIDE 6 sec INTERNAL]) [ROWS 10]""",
        THREE,
    ),
    PaperQuery(
        "THESIS 3.4: sums of chunks, with Wstream",
        "SELECT SUM(Wstream(SUM(a))[ROWS 10]) FROM S1 [RANGE 6 sec SLIDE 6 sec]",
        THREE,
    ),
    PaperQuery(
        "THESIS 3.4: Rstream-restore",
        """SELECT RSTREAM_RESTORE(*) FROM S1 [RANGE 1 min SLIDE 10 sec], S2 [RANGE 1 min SLIDE 10 sec]
           WHERE S1.a = S2.a""",
        THREE,
    ),
    PaperQuery(
        "THESIS 3.5: join and negation",
        """SELECT Rstream(*)
           FROM S1 [RANGE 1 min], S2 [RANGE 1 min]
           WHERE S1.a = S2.a
             AND NOT EXISTS (SELECT Rstream(*) FROM S3 [RANGE 1 min] WHERE S3.a = S1.a)""",
        THREE,
    ),
    PaperQuery(
        "THESIS 3.6 Query 1: join",
        """SELECT Rstream(*)
           FROM Link1 [RANGE 2000 sec], Link2 [RANGE 2000 sec]
           WHERE Link1.source_IP_address = Link2.source_IP_address
             AND Link1.protocol = 'ftp' AND Link2.protocol = 'ftp'""",
        LINKS,
    ),
    PaperQuery(
        "THESIS 3.6 Query 2: distinct sources",
        "SELECT Rstream(DISTINCT source_IP_address) FROM Link1 [RANGE 2000 sec]",
        LINKS,
    ),
    PaperQuery(
        "THESIS 3.6 Query 2: distinct pairs",
        "SELECT Rstream(DISTINCT source_IP_address, destination_IP_address) FROM Link1 [RANGE 2000 sec]",
        LINKS,
    ),
    PaperQuery(
        "THESIS 3.6 Query 3: negation",
        """SELECT Rstream(*)
           FROM Link1 [RANGE 2000 sec]
           WHERE NOT EXISTS (
             SELECT Rstream(*) FROM Link2 [RANGE 2000 sec]
             WHERE Link2.source_IP_address = Link1.source_IP_address)""",
        LINKS,
    ),
    PaperQuery(
        "THESIS 3.6 Query 4: negation and join",
        """SELECT Rstream(*)
           FROM Link1 [RANGE 2000 sec], Link3 [RANGE 2000 sec]
           WHERE Link1.source_IP_address = Link3.source_IP_address AND Link3.protocol = 'ftp'
             AND NOT EXISTS (
               SELECT Rstream(*) FROM Link2 [RANGE 2000 sec]
               WHERE Link2.source_IP_address = Link1.source_IP_address)""",
        LINKS,
    ),
    PaperQuery("THESIS 8.1 Q1", "SELECT MEDIAN(length) FROM S [WINDOW 10 min SLIDE 2 min]", PACKETS),
    PaperQuery("THESIS 8.1 Q2", "SELECT MEDIAN(length) FROM S [WINDOW 14 min SLIDE 3 min]", PACKETS),
    *(
        PaperQuery(
            f"THESIS 8.3 Q{number}",
            f"SELECT {what} FROM S [WINDOW 10 min SLIDE 2 min] WHERE {where}",
            PACKETS,
        )
        for number, what, where in (
            (1, "SUM(length)", "protocol = 'TCP'"),
            (2, "SUM(length)", "protocol = 'UDP'"),
            (3, "SUM(length)", "protocol = 'TCP' OR protocol = 'UDP'"),
            (4, "MAX(length)", "protocol = 'TCP'"),
            (5, "MAX(length)", "user = 'U'"),
            (6, "MAX(length)", "protocol = 'TCP' OR user = 'U'"),
        )
    ),
    *(
        PaperQuery(
            f"THESIS 8.4 Q{number}",
            f"SELECT SUM(length) FROM S [WINDOW {window} min SLIDE {slide} min]",
            PACKETS,
        )
        for number, (window, slide) in enumerate(
            ((10, 2), (5, 2), (6, 2), (15, 3), (12, 3), (20, 5), (30, 5)), start=1
        )
    ),
]

SHEDDING = [
    PaperQuery(
        "SHEDDING Figure 1: how often in an hour IBM's prices of 5 minutes differ by more than 5",
        """SELECT COUNT(*)
           FROM (SELECT MAX(price) - MIN(price) AS spread
                 FROM Stocks [RANGE 5 MINUTES SLIDE 5 MINUTES]
                 WHERE symbol = 'IBM') [RANGE 1 HOUR SLIDE 1 HOUR] AS five
           WHERE spread > 5""",
        STOCKS,
    ),
    PaperQuery(
        "SHEDDING Figure 7: counts of counts",
        """SELECT COUNT(*)
           FROM (SELECT COUNT(*) AS trades FROM Stocks [RANGE 10 SECONDS SLIDE 10 SECONDS])
                [RANGE 100 SECONDS SLIDE 100 SECONDS] AS ten""",
        STOCKS,
    ),
]

PAPER_QUERIES = [*WID, *PRINTED, *PANES, *DIVERSE, *THESIS, *SHEDDING]
