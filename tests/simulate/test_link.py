"""The fluid link: bytes no earlier than computed, first in first out, capacity changes, cuts."""

import pytest

from prfaas.model.deployment import Overlap
from prfaas.simulate.link import Link
from prfaas.simulate.requests import Request


def request(index: int, *, bits: float, service: float, tokens: int = 10_000) -> Request:
    made = Request(index=index, arrival=0.0, tokens=tokens, output_tokens=1)
    made.bits, made.service = bits, service
    return made


def link(capacity: float, overlap: Overlap, **more: float) -> Link:
    return Link(capacity=capacity, overlap=overlap, state_bits=more.get("state_bits", 0.0))


def test_layer_overlap_hides_a_transfer_that_is_faster_than_its_prefill() -> None:
    subject, one = link(10.0, "Layer"), request(1, bits=20.0, service=4.0)
    subject.begin(0.0, one)
    assert subject.finish(4.0, one) == 4.0


def test_layer_overlap_leaves_what_the_link_could_not_carry_meanwhile() -> None:
    subject, one = link(2.0, "Layer"), request(1, bits=20.0, service=4.0)
    subject.begin(0.0, one)
    assert subject.finish(4.0, one) == pytest.approx(10.0)


def test_without_overlap_the_transfer_begins_when_the_prefill_ends() -> None:
    subject, one = link(10.0, "None"), request(1, bits=20.0, service=4.0)
    subject.begin(0.0, one)
    assert subject.finish(4.0, one) == pytest.approx(6.0)


def test_chunk_overlap_leaves_the_last_chunk_and_the_state_for_the_end() -> None:
    subject = link(10.0, "Chunk", state_bits=4.0)
    one = request(1, bits=20.0, service=4.0, tokens=16_384)
    subject.begin(0.0, one)
    assert subject.finish(4.0, one) == pytest.approx(4.0 + (4.0 + 8.0) / 10.0)


def test_transfers_are_served_in_the_order_their_prefills_began() -> None:
    subject = link(1.0, "Layer")
    first, second = request(1, bits=4.0, service=2.0), request(2, bits=4.0, service=1.0)
    subject.begin(0.0, first)
    subject.begin(0.5, second)
    assert subject.finish(1.5, second) == pytest.approx(1.5 + (3.0 - 1.5 + 4.0))
    assert subject.finish(2.0, first) == pytest.approx(4.0)


def test_all_bits_arrive_and_are_counted_once() -> None:
    subject = link(3.0, "Layer")
    work = [request(i, bits=5.0 + i, service=0.7) for i in range(6)]
    for i, one in enumerate(work):
        subject.begin(i * 0.7, one)
        subject.finish(i * 0.7 + 0.7, one)
    assert subject.backlog_seconds(1000.0) == 0.0
    assert subject.delivered_bits == pytest.approx(sum(one.bits for one in work))
    assert subject.busy_bits / subject.busy_seconds == pytest.approx(3.0)


def test_the_backlog_counts_bits_of_running_prefills_from_their_start() -> None:
    subject, one = link(2.0, "Layer"), request(1, bits=20.0, service=4.0)
    subject.begin(0.0, one)
    assert subject.backlog_seconds(0.0) == pytest.approx(10.0)
    assert subject.backlog_seconds(2.0) == pytest.approx(8.0)


def test_a_capacity_change_moves_what_is_under_way() -> None:
    subject, one = link(2.0, "None"), request(1, bits=20.0, service=4.0)
    subject.begin(0.0, one)
    assert subject.finish(4.0, one) == pytest.approx(14.0)
    moved = subject.set_capacity(9.0, 10.0)
    assert moved == [one]
    assert one.ready_at == pytest.approx(10.0)


def test_a_cut_link_delivers_nothing_until_it_is_back() -> None:
    subject, one = link(2.0, "None"), request(1, bits=20.0, service=4.0)
    subject.begin(0.0, one)
    subject.finish(4.0, one)
    subject.set_capacity(9.0, 0.0)
    assert one.ready_at == float("inf")
    assert subject.backlog_seconds(20.0) == float("inf")
    subject.set_capacity(100.0, 2.0)
    assert one.ready_at == pytest.approx(105.0)


def test_an_aborted_prefill_frees_the_link() -> None:
    subject = link(1.0, "Layer")
    gone, stays = request(1, bits=100.0, service=10.0), request(2, bits=1.0, service=1.0)
    subject.begin(0.0, gone)
    subject.abort(0.0, gone)
    subject.begin(0.0, stays)
    assert subject.finish(1.0, stays) == pytest.approx(1.0)
