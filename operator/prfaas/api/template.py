"""Which pods a pool has: made from a trimmed template, or chosen by a selector.

A full PodTemplateSpec with descriptions is 384 KB of schema. This one types what the operator reads, keeps
everything else as it is, and leaves the rest of the check to a server-side dry run in the member cluster.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from prfaas.api.base import ApiModel, Rule
from prfaas.api.constraints import ListMap
from prfaas.api.fields import Name
from prfaas.api.meta import CONTAINER_ENGINE, CONTAINER_ROUTER

KEEP_UNKNOWN: JsonDict = {"x-kubernetes-preserve-unknown-fields": True}

LabelValue = Annotated[str, Field(max_length=63)]
StringMap = Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=64)]
LabelMap = Annotated[dict[str, LabelValue], Field(max_length=64)]


class TemplateMetadata(ApiModel):
    """Labels and annotations of the pods."""

    labels: LabelMap = Field(default_factory=dict)
    """Labels of the pods, besides those of the operator (prfaas.io/...), which win. Keys by which GitOps
    tools and Helm track what is theirs are not copied: the tools would prune the pods."""
    annotations: StringMap = Field(default_factory=dict)
    """Annotations of the pods, with the same exceptions."""


class Container(ApiModel):
    """One container. Fields not listed here are those of every pod and are passed on as they are."""

    model_config = ConfigDict(extra="allow", json_schema_extra=KEEP_UNKNOWN)

    name: Name
    """Name of the container. The one that runs the engine is called engine."""
    image: Annotated[str, Field(min_length=1, max_length=512)]
    """Image of the container."""
    command: Annotated[tuple[Annotated[str, Field(max_length=8192)], ...], Field(max_length=256)] = ()
    """Program and its first arguments; the image's own where left out."""
    args: Annotated[tuple[Annotated[str, Field(max_length=8192)], ...], Field(max_length=256)] = ()
    """Arguments. $(POD_IP), $(POD_NAME), $(POD_UID), $(POD_NAMESPACE), $(PRFAAS_ROLE), $(PRFAAS_POOL) and
    $(PRFAAS_SLOT) are replaced by the instance's own."""
    env: Annotated[
        tuple[Annotated[dict[str, Any], Field(json_schema_extra=KEEP_UNKNOWN)], ...], Field(max_length=256)
    ] = ()
    """Environment variables, as in every pod."""


def _has_engine(pod: "PodSpec") -> bool:
    return any(c.name == CONTAINER_ENGINE for c in pod.containers)


def _no_router(pod: "PodSpec") -> bool:
    return all(c.name != CONTAINER_ROUTER for c in (*pod.containers, *pod.init_containers))


class PodSpec(ApiModel):
    """A pod spec. Fields not listed here are those of every pod and are passed on as they are."""

    model_config = ConfigDict(extra="allow", json_schema_extra=KEEP_UNKNOWN)

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.containers.exists(c, c.name == 'engine')",
            message="Name the container that runs the engine 'engine': its ports, probes and preStop hook "
            "are managed by the operator.",
            holds=_has_engine,
            path=".containers",
        ),
        Rule(
            cel="self.containers.all(c, c.name != 'router') && "
            "(!has(self.initContainers) || self.initContainers.all(c, c.name != 'router'))",
            message="The name 'router' is taken by the sidecar that the operator adds: call the container "
            "something else.",
            holds=_no_router,
        ),
    )

    containers: Annotated[tuple[Container, ...], Field(min_length=1, max_length=16), ListMap("name")]
    """Containers. One is called engine and serves the OpenAI API on 127.0.0.1 at engine.port."""
    init_containers: Annotated[tuple[Container, ...], Field(max_length=16), ListMap("name")] = ()
    """Init containers, run before the engine. The router is added to them as a native sidecar."""
    service_account_name: Annotated[str, Field(max_length=253)] = ""
    """ServiceAccount of the pods, in the member cluster's namespace. Left out, the operator makes one that
    may read the pool's tables and nothing else."""


class PodTemplate(ApiModel):
    """Template of the pool's pods."""

    metadata: TemplateMetadata = Field(default_factory=TemplateMetadata)
    """Labels and annotations of the pods."""
    spec: PodSpec
    """Spec of the pods, without what the operator adds: the router, the engine's probes and the preStop
    hook."""

    def pod_spec(self) -> dict[str, Any]:
        """The pod spec as the user wrote it: a fresh JSON object with the fields that were set, known or
        not."""
        return self.spec.model_dump(mode="json", by_alias=True, exclude_unset=True)


class TemplatePatches(ApiModel):
    """What differs between prefill and decode instances, where anything does."""

    prefill: Annotated[dict[str, Any] | None, Field(json_schema_extra=KEEP_UNKNOWN)] = None
    """Merged over the template for instances that prefill: maps key by key (null removes a key), lists of
    objects with a name (containers, env, ports, volumes) entry by entry, other lists (command, args) replaced
    whole."""
    decode: Annotated[dict[str, Any] | None, Field(json_schema_extra=KEEP_UNKNOWN)] = None
    """Merged over the template for instances that decode, in the same way."""


class LabelSelectorRequirement(ApiModel):
    """One requirement of a label selector."""

    key: Annotated[str, Field(min_length=1, max_length=317)]
    """Label key."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """In and NotIn compare with values; Exists and DoesNotExist look at the key alone."""
    values: Annotated[
        tuple[Annotated[str, Field(max_length=63)], ...],
        Field(max_length=64, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = ()
    """Values for In and NotIn."""


class PodSelector(ApiModel):
    """Pods that already run, chosen by labels."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="(has(self.matchLabels) && size(self.matchLabels) > 0) || "
            "(has(self.matchExpressions) && size(self.matchExpressions) > 0)",
            message="An empty selector would adopt every pod of the namespace: name at least one label.",
            holds=lambda s: bool(s.match_labels or s.match_expressions),
        ),
    )

    match_labels: LabelMap = Field(default_factory=dict)
    """Labels that the pods have."""
    match_expressions: Annotated[
        tuple[LabelSelectorRequirement, ...],
        Field(max_length=16, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = ()
    """Further requirements."""
