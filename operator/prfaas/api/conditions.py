"""Condition types and reasons: the closed list that users script against.

Shape follows kstatus: Reconciling and Stalled exist only while true, all others are positive. A type or
reason is never renamed within a served version; the API reference is generated from the sentences below.
"""

from enum import StrEnum


class _Documented(StrEnum):
    """A word with a sentence that explains it."""

    meaning: str

    def __new__(cls, word: str, meaning: str) -> "_Documented":
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        return member


class ConditionType(_Documented):
    """What is observed. `meaning` says what True promises."""

    READY = "Ready", "The object does what its spec promises."
    RECONCILING = "Reconciling", "A new generation is being carried out. Exists only while true."
    STALLED = "Stalled", "Nothing will happen before somebody acts. Exists only while true."
    REACHABLE = "Reachable", "The member cluster's API server answers."
    AUTHORIZED = "Authorized", "The credentials may do there what the operator needs."
    TEMPLATE_ACCEPTED = "TemplateAccepted", "The member cluster takes pods of the current template."
    INSTANCES_READY = "InstancesReady", "As many instances serve as the spec wants."
    ROLES_SETTLED = "RolesSettled", "Every instance has the role that it should have."
    TELEMETRY_FRESH = "TelemetryFresh", "Routers have reported within the last seconds."
    REMOTE_USABLE = "RemoteUsable", "At least one remote instance can take prefill now."
    HAND_OFF_VERIFIED = "HandOffVerified", "KV cache that was handed off arrived and was used."
    WITHIN_BUDGET = "WithinBudget", "Egress stays within the budgets of the PrFaaS pools."


class Reason(_Documented):
    """Why a condition has its status, as one word. `meaning` is for the API reference."""

    # Ready, and what keeps it from being so
    AVAILABLE = "Available", "All is as the spec wants."
    IN_USE = "InUse", "The object is being deleted and waits until nothing names it any more."
    DELETING = "Deleting", "The object is being deleted; its instances are drained first."
    NEW_GENERATION = "NewGeneration", "A change of the spec is being carried out."
    NOT_SUPPORTED = "NotSupported", "The spec asks for something that this release does not build yet."
    INVALID_SPEC = "InvalidSpec", "The spec breaks a rule that was added after the object was made."
    CLUSTER_NOT_FOUND = "ClusterNotFound", "The MemberCluster that is named does not exist."
    PROFILE_NOT_FOUND = "ProfileNotFound", "The ModelProfile that is named does not exist."
    HARDWARE_NOT_FOUND = (
        "HardwareNotFound",
        "The ModelProfile has no such hardware, or no numbers for the role.",
    )
    POOL_NOT_FOUND = "PoolNotFound", "A pool that is named does not exist."
    POOL_TAKEN = "PoolTaken", "An older PrefillRoute acts on the same PDPool."
    NAME_TAKEN = "NameTaken", "An object of that name belongs to somebody else; it is left alone."
    OWNED_BY_ANOTHER_HUB = (
        "OwnedByAnotherHub",
        "The children belong to another management cluster; prfaas.io/adopt-from takes them over.",
    )
    DUPLICATE_CLUSTER = "DuplicateCluster", "Another MemberCluster is the same cluster."
    MODEL_MISMATCH = "ModelMismatch", "Pools of the route serve models of different names."
    CLUSTER_GONE = (
        "ClusterGone",
        "Children may remain in a cluster that cannot be reached; prfaas.io/abandon lets the object go.",
    )
    WRITE_FAILED = "WriteFailed", "An API server refused something that the operator wrote."

    # Reachable and Authorized
    CONNECTED = "Connected", "The API server answered within the last minute."
    NOT_CONTACTED = "NotContacted", "No contact has been tried yet."
    CLUSTER_UNREACHABLE = "ClusterUnreachable", "The API server has not answered for a minute."
    SECRET_NOT_FOUND = "SecretNotFound", "The Secret with the credentials does not exist."
    SECRET_INVALID = "SecretInvalid", "The Secret holds no usable kubeconfig."
    EXEC_NOT_ALLOWED = (
        "ExecNotAllowed",
        "The kubeconfig names a program that the configuration does not allow.",
    )
    VERSION_TOO_OLD = (
        "VersionTooOld",
        "The cluster's Kubernetes version is older than the oldest supported one.",
    )
    GRANTED = "Granted", "Everything that is needed is allowed."
    UNAUTHORIZED = "Unauthorized", "The API server does not accept the credentials."
    FORBIDDEN = "Forbidden", "The credentials lack permissions; the message lists them."
    NAMESPACE_NOT_FOUND = (
        "NamespaceNotFound",
        "The namespace for children does not exist in the member cluster.",
    )

    # TemplateAccepted, InstancesReady, RolesSettled
    ACCEPTED = "Accepted", "A dry run of the template passed."
    NOT_CHECKED = "NotChecked", "The template has not been checked yet."
    TEMPLATE_REFUSED = (
        "TemplateRefused",
        "The member cluster refuses pods of the template; the message says why.",
    )
    ALL_READY = "AllReady", "Every instance serves."
    SCALED_TO_ZERO = "ScaledToZero", "The spec wants no instance."
    NOT_READY = "NotReady", "Some instances do not serve yet."
    BELOW_MINIMUM = "BelowMinimum", "Fewer instances of a role serve than its minimum."
    UNSCHEDULABLE = "Unschedulable", "Pods find no node."
    CRASHING = "Crashing", "Pods end again and again; the slot is held back for a while."
    QUOTA_EXCEEDED = "QuotaExceeded", "A resource quota of the member cluster holds back pods."
    ROLLOUT_PAUSED = "RolloutPaused", "The rollout is paused by the spec."
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded", "The rollout has made no progress for too long."
    SETTLED = "Settled", "All roles are as intended."
    CONVERTING = "Converting", "An instance is changing its role."
    ROLES_PENDING = "RolesPending", "Instances of a role are missing and are being made."
    ROUTE_TABLE_TOO_LARGE = "RouteTableTooLarge", "The table would exceed its limit; the last good one stays."

    # Routes
    FRESH = "Fresh", "Reports are recent."
    STALE = "Stale", "No recent report from some routers; the message says from how many."
    NO_REPORTS = "NoReports", "No router has reported yet."
    REMOTE_READY = "RemoteReady", "Remote instances are ready and compatible."
    NO_REMOTE_READY = "NoRemoteReady", "No remote instance is ready; prefill stays local."
    INCOMPATIBLE = "Incompatible", "Remote instances cannot be read by the pool's; prefill stays local."
    MODE_NEVER = "ModeNever", "The route sends nothing away."
    VERIFIED = "Verified", "Recent hand-offs were verified."
    NO_HAND_OFFS = "NoHandOffs", "There has been no hand-off yet."
    UNVERIFIED = "Unverified", "Nothing says whether recent hand-offs were used."
    RECOMPUTED = "Recomputed", "Some recent hand-offs were prefilled again by the decode instance."
    HAND_OFFS_FAILED = "HandOffsFailed", "Some recent hand-offs broke off."
    NO_BUDGET = "NoBudget", "No PrFaaS pool of the route has a budget."
    BELOW_BUDGET = "BelowBudget", "Budgets are not used up."
    BUDGET_USED_UP = "BudgetUsedUp", "A budget is used up; nothing new is sent to that pool."


TRANSIENT = frozenset({ConditionType.RECONCILING, ConditionType.STALLED})
"""Types that exist only while true."""

BY_KIND: dict[str, tuple[ConditionType, ...]] = {
    "MemberCluster": (ConditionType.REACHABLE, ConditionType.AUTHORIZED),
    "ModelProfile": (),
    "PrfaasPool": (
        ConditionType.TEMPLATE_ACCEPTED,
        ConditionType.INSTANCES_READY,
        ConditionType.ROLES_SETTLED,
    ),
    "PDPool": (ConditionType.TEMPLATE_ACCEPTED, ConditionType.INSTANCES_READY, ConditionType.ROLES_SETTLED),
    "PrefillRoute": (
        ConditionType.TELEMETRY_FRESH,
        ConditionType.REMOTE_USABLE,
        ConditionType.HAND_OFF_VERIFIED,
        ConditionType.WITHIN_BUDGET,
    ),
}
"""Types of each kind, besides Ready, Reconciling and Stalled, which all have."""
