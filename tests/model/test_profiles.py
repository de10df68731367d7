"""The shipped profiles are valid manifests and hold the numbers the model was checked with."""

from pathlib import Path

import pytest
import yaml

from prfaas.api.kinds import read
from prfaas.api.modelprofile import ModelProfile
from prfaas.model import paper
from prfaas.model.published import LENGTHS, MODELS, PublishedModel
from prfaas.model.resources import hardware, kv_law

FOLDER = Path(__file__).parents[2] / "manifests" / "profiles"


def profile(name: str) -> ModelProfile:
    resource = read(yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")))
    assert isinstance(resource, ModelProfile)
    return resource


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_a_profile_of_table_3_has_the_numbers_that_were_checked(model: PublishedModel) -> None:
    spec = profile(model.name).spec
    law, numbers = kv_law(spec.kv_cache), hardware(spec.hardware[0], profile=model.name)
    for tokens in (*LENGTHS, 50_000):
        assert law.bytes(tokens) == model.kv.bytes(tokens)
        assert numbers.prefill.seconds(tokens) == pytest.approx(model.curve.seconds(tokens), rel=1e-5)


def test_the_internal_models_profile_is_the_case_study() -> None:
    spec = profile("internal-1t").spec
    law = kv_law(spec.kv_cache)
    curves = {h.name: hardware(h, profile="internal-1t").prefill for h in spec.hardware}
    for tokens in (1024, 19_400, 45_046, 131_072):
        assert law.bytes(tokens) == paper.STATE_BYTES + paper.BYTES_PER_TOKEN * tokens
        assert curves["H200"].seconds(tokens) == pytest.approx(paper.H200.seconds(tokens), rel=1e-4)
        assert curves["H20"].seconds(tokens) == pytest.approx(paper.H20.seconds(tokens), rel=2e-3)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda p: p.stem)
def test_every_number_says_where_it_comes_from(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "arXiv 2604.15039" in text
    assert "Certain" in text or "Likely" in text or "certain" in text
    assert "alibrated" in text
