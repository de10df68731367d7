"""The operator's metrics and their reference page."""

from pathlib import Path

import pytest

from prfaas.telemetry import definitions as d
from prfaas.telemetry.metrics import Metrics
from prfaas.telemetry.reference import exposed_name, reference

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics-operator.md"


def test_the_reference_page_is_up_to_date() -> None:
    assert PAGE.read_text() == reference(), "run: python -m prfaas.telemetry.reference " + str(PAGE)


def test_every_metric_is_exposed_under_the_name_in_the_reference() -> None:
    metrics = Metrics()
    text = metrics.expose().decode()
    for metric in d.DEFINITIONS:
        assert f"# TYPE {exposed_name(metric)} " in text


def test_series_of_what_is_gone_can_be_dropped() -> None:
    metrics = Metrics()
    labels = {"pool": "a", "role": "decode", "state": "Ready"}
    metrics.set(d.INSTANCES, 2, namespace="ns", **labels)
    metrics.set(d.INSTANCES, 1, namespace="other", **labels)
    metrics.forget(d.INSTANCES, namespace="ns", pool="a")
    assert metrics.value(d.INSTANCES.name, {"namespace": "ns", **labels}) is None
    assert metrics.value(d.INSTANCES.name, {"namespace": "other", **labels}) == 1


def test_a_metric_is_used_as_what_it_is() -> None:
    with pytest.raises(TypeError, match="no gauge"):
        Metrics().set(d.RECONCILES, 1, kind="PDPool", outcome="done")
