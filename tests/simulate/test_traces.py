"""Recorded traces: real column names and units, and one clear line for what cannot be read."""

from pathlib import Path

import pytest

from prfaas.simulate.traces import TraceError, read_trace

MOONCAKE = '{"timestamp": %s, "input_length": %s, "output_length": 52, "hash_ids": [46, 47]}\n'
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"


def trace(folder: Path, text: str) -> Path:
    path = folder / "trace"
    path.write_text(text, encoding="utf-8")
    return path


def test_mooncake_counts_in_milliseconds_and_has_prefix_blocks(tmp_path: Path) -> None:
    got = read_trace(trace(tmp_path, MOONCAKE % (27482, 6955) + MOONCAKE % (30482, 512)))
    assert got.format == "mooncake"
    assert got.rows[0] == (27.482, 6955, 52, (46, 47))
    assert got.rows[1].time - got.rows[0].time == pytest.approx(3.0)


def test_azure_has_dates_with_seven_decimals_or_a_zone(tmp_path: Path) -> None:
    text = AZURE + "2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.2299600+00:00,3180,8\n"
    got = read_trace(trace(tmp_path, text))
    assert got.format == "azure"
    assert [row.tokens for row in got.rows] == [4808, 3180]
    assert got.rows[1].time - got.rows[0].time == pytest.approx(0.25)


def test_burstgpt_counts_in_seconds_and_a_failed_request_has_no_answer(tmp_path: Path) -> None:
    text = BURST + "5,ChatGPT,472,18,490,Conversation log\n45.5,GPT-4,1087,0,1087,API log\n"
    got = read_trace(trace(tmp_path, text))
    assert got.format == "burstgpt"
    assert [(row.time, row.tokens, row.output_tokens) for row in got.rows] == [(5, 472, 18), (45.5, 1087, 1)]


def test_rows_come_in_the_order_of_time(tmp_path: Path) -> None:
    got = read_trace(trace(tmp_path, BURST + "9,m,5,1,6,l\n2,m,7,1,8,l\n"))
    assert [row.time for row in got.rows] == [2, 9]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "empty"),
        ("a,b,c\n1,2,3\n", 1, "neither"),
        ("TIMESTAMP,ContextTokens\n", 1, "missing column GeneratedTokens"),
        ("Timestamp,Model,Request tokens\n", 1, "missing column Response tokens"),
        (AZURE + "2023-11-16 18:17:03.97,nan,10\n", 2, "ContextTokens"),
        (AZURE + "2023-11-16 18:17:03.97,-5,10\n", 2, "ContextTokens"),
        (AZURE + "2023-11-16 18:17:03.97,0,10\n", 2, "ContextTokens"),
        (AZURE + "2023-11-16 18:17:03.97,5\n", 2, "GeneratedTokens is missing"),
        (AZURE + "yesterday,5,5\n", 2, "yesterday"),
        (BURST + "1,m,5,5,10,l\nNaN,m,5,5,10,l\n", 3, "timestamp"),
        (BURST + "-1,m,5,5,10,l\n", 2, "timestamp"),
        (BURST + "1,m,5.5,5,10,l\n", 2, "Request tokens"),
        (BURST + "1,m,99999999999,5,10,l\n", 2, "Request tokens"),
        (MOONCAKE % (1, 5) + "{broken\n", 2, "JSON"),
        (MOONCAKE % (1, 5) + '{"timestamp": 1, "input_length": 5, "output_length": 1}\n', 2, "hash_ids"),
        (MOONCAKE % (1, 5) + MOONCAKE % ('"soon"', 5), 2, "soon"),
        (MOONCAKE % (1, 5) + MOONCAKE % (1, "null"), 2, "None"),
        (MOONCAKE.replace("[46, 47]", '"46"') % (1, 5), 1, "hash_ids"),
        ("[1]\n" + AZURE, 1, "neither"),
        (AZURE, 2, "no request"),
    ],
)
def test_a_bad_line_is_named_by_its_number(tmp_path: Path, text: str, line: int, says: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_trace(trace(tmp_path, text))
    message = str(caught.value)
    assert says in message
    assert f"line {line}:" in message or "no request" in message
    assert "\n" not in message


def test_bad_lines_can_be_skipped_and_are_counted(tmp_path: Path) -> None:
    text = BURST + "1,m,5,5,10,l\nx,m,5,5,10,l\n2,m,-5,5,0,l\n3,m,7,5,12,l\n"
    got = read_trace(trace(tmp_path, text), skip_bad_lines=True)
    assert [row.tokens for row in got.rows] == [5, 7]
    assert got.skipped == 2


def test_a_file_of_bad_lines_alone_is_still_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no request"):
        read_trace(trace(tmp_path, BURST + "x,m,5,5,10,l\n"), skip_bad_lines=True)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="nowhere"):
        read_trace(tmp_path / "nowhere")
