"""``zenwire report``: captures, or tables, as one page that needs nothing but a browser.

    source = open_source(["drive.pcap"])
    with spark_session("report") as spark, tables_of(spark, source) as tables:
        html = render(summarise(source, tables))

Spark is imported by ``zenwire.web.report.summary`` alone.
"""

from zenwire.web.report.model import Summary, to_json
from zenwire.web.report.page import render
from zenwire.web.report.source import InputError, Source, open_source, tables_of

__all__ = ["InputError", "Source", "Summary", "open_source", "render", "tables_of", "to_json"]
