"""What the operator asks for in a member cluster is no more than what it does there."""

from prfaas.fleet.permissions import NEEDED, needed_rules
from prfaas.kube.resources import CONFIGMAPS, PODS, REPLICASETS


def test_only_what_the_operator_deletes_itself_may_be_deleted() -> None:
    assert {resource for resource, verbs in NEEDED if "delete" in verbs} == {PODS, REPLICASETS, CONFIGMAPS}


def test_secrets_cannot_be_listed_and_nothing_is_granted_by_wildcard() -> None:
    rules = {rule["resources"][0]: set(rule["verbs"]) for rule in needed_rules()}
    assert rules["secrets"] == {"get", "create", "patch"}
    assert not any("*" in words for rule in needed_rules() for words in rule.values())
