"""Logs as JSON: one object a line, also with an exception."""

import json
import logging

from prfaas.controller.logs import JsonFormatter


def test_a_record_is_one_line_of_json_with_its_trace() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        record = logging.LogRecord("prfaas.x", logging.ERROR, "f", 1, "%s failed", ("pd",), None)
        record.exc_info = (type(error), error, error.__traceback__)
    text = JsonFormatter().format(record)
    assert "\n" not in text
    entry = json.loads(text)
    assert (entry["level"], entry["logger"], entry["message"]) == ("error", "prfaas.x", "pd failed")
    assert "ValueError: two\nlines" in entry["exception"]
