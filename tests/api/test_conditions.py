"""The closed lists of condition types and reasons."""

from prfaas.api.conditions import BY_KIND, ConditionType, Reason
from prfaas.api.kinds import BY_NAME


def test_every_kind_has_its_types_and_every_word_its_meaning() -> None:
    assert set(BY_KIND) == set(BY_NAME)
    for word in (*ConditionType, *Reason):
        assert word.isalpha()
        assert word[0].isupper()
        assert word.meaning.endswith(".")
