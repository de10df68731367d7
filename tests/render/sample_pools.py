"""Resources that the rendering tests start from: a PD pool with a patch, a PrFaaS pool and what they refer
to."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import yaml

from prfaas.api.membercluster import MemberCluster
from prfaas.api.modelprofile import ModelProfile
from prfaas.api.pdpool import PDPool
from prfaas.api.prefillroute import PrefillRoute
from prfaas.api.prfaaspool import PrfaasPool
from prfaas.render.pool import PoolView
from prfaas.render.view import pool_view

HUB_ID = "11111111-0000-4000-8000-000000000000"
ANCHOR_UID = "22222222-0000-4000-8000-000000000000"
ROUTER_IMAGE = "registry.example.com/prfaas/router:1.0"

CLUSTER = MemberCluster.model_validate(
    yaml.safe_load(
        """
        metadata: {name: east, namespace: team}
        spec:
          connection: {inCluster: {}}
          namespace: inference
          images: {pullSecretRefs: [{name: mirror}]}
        """
    )
)

PROFILE = ModelProfile.model_validate(
    yaml.safe_load(
        """
        metadata: {name: tera, namespace: team}
        spec:
          kvCache:
            dtype: BF16
            groups:
              - {name: attention, kind: Full, bytesPerToken: 17280, blockTokens: 16}
              - {name: recurrent, kind: Recurrent, bytesPerSequence: 174Mi, snapshotTokens: 1024}
            prefixBlockTokens: 16
          hardware:
            - name: H200
              prefill:
                points: [{tokens: 8192, duration: 720ms}, {tokens: 1024, duration: 440ms}]
                batchTokens: 8192
                batchOverhead: 20ms
            - name: H20
              prefill:
                points: [{tokens: 1024, duration: 583ms}, {tokens: 8192, duration: 1542ms}]
              decode: {maxBatch: 20, steps: [{batch: 20, duration: 25ms}]}
        """
    )
)

TEMPLATE = """
      metadata:
        labels: {team: inference, app.kubernetes.io/instance: argo}
        annotations: {argocd.argoproj.io/tracking-id: "x:y", note: kept}
      spec:
        securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
        tolerations: [{key: gpu, operator: Exists}]
        containers:
          - name: engine
            image: registry.example.com/engine:0.22.0
            command: [serve]
            args: ["--host=127.0.0.1", "--port=8100", "--transfer-host=$(POD_IP)"]
            env: [{name: UCX_TLS, value: tcp}]
            ports: [{name: kv, containerPort: 5600}]
            startupProbe: {httpGet: {path: /health, port: 8100}, failureThreshold: 60}
            livenessProbe: {tcpSocket: {port: 8100}, periodSeconds: 5}
            resources: {limits: {memory: 1Gi}}
            securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        volumes: [{name: scratch, emptyDir: {}}]
"""

PD_POOL = PDPool.model_validate(
    yaml.safe_load(
        f"""
        metadata: {{name: chat, namespace: team, uid: aaaa, labels: {{app.kubernetes.io/instance: argo}}}}
        spec:
          clusterRef: {{name: east}}
          modelProfileRef: {{name: tera}}
          hardware: H20
          servedModelName: tera
          instances: 4
          roles: {{mode: Manual, manual: {{prefill: 1}}, decode: {{min: 1}}}}
          engine: {{type: VLLM, version: 0.22.0}}
          slo: {{ttft: 6s}}
          drain: {{timeout: 90s}}
          templatePatches:
            prefill:
              spec:
                containers: [{{name: engine, env: [{{name: BATCH, value: "8192"}}]}}]
          template: {yaml.safe_dump(yaml.safe_load(TEMPLATE), default_flow_style=True, width=10**6)}
        """
    )
)

PRFAAS_POOL = PrfaasPool.model_validate(
    yaml.safe_load(
        f"""
        metadata: {{name: long, namespace: team, uid: bbbb}}
        spec:
          clusterRef: {{name: west}}
          modelProfileRef: {{name: tera}}
          hardware: H200
          servedModelName: tera
          instances: 2
          engine: {{type: VLLM, version: 0.22.0}}
          egress: {{capacityBitsPerSecond: 100G, maxUtilizationPercent: 80}}
          gate: {{order: ShortestFirst, ageingPercent: 600, queueLimit: 64}}
          template: {yaml.safe_dump(yaml.safe_load(TEMPLATE), default_flow_style=True, width=10**6)}
        """
    )
)

ROUTE = PrefillRoute.model_validate(
    yaml.safe_load(
        """
        metadata: {name: route, namespace: team}
        spec:
          pdPoolRef: {name: chat}
          prfaasPools: [{name: long}]
          threshold: {mode: Static, tokens: 19400, min: 4096, inPlaceTokens: 4096}
          fallback: {policy: NextPlace, budgetPercent: 20}
        """
    )
)


def view_of(pool: PDPool | PrfaasPool) -> PoolView:
    """The pool resolved against the sample cluster and profile."""
    return pool_view(pool, cluster=CLUSTER, profile=PROFILE, hub_id=HUB_ID, router_image=ROUTER_IMAGE)


PD_VIEW = view_of(PD_POOL)
PRFAAS_VIEW = view_of(PRFAAS_POOL)


def with_spec(view: PoolView, **fields: Any) -> PoolView:
    """The view with fields of its template's pod spec replaced."""
    template = {**view.template, "spec": {**view.template["spec"], **fields}}
    return replace(view, template=template)


def with_engine(view: PoolView, **fields: Any) -> PoolView:
    """The view with fields of its engine container replaced."""
    (engine,) = view.template["spec"]["containers"]
    return with_spec(view, containers=[{**engine, **fields}])


def pod(
    *,
    uid: str,
    slot: int = 0,
    role: str = "decode",
    ip: str = "127.0.1.1",
    ready: bool = True,
    labels: Mapping[str, str] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """A pod as the API server shows it."""
    own = {"prfaas.io/slot": str(slot), "prfaas.io/role": role, **(labels or {})}
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {
        "metadata": {"uid": uid, "name": f"pod-{uid}", "labels": own, **metadata},
        "status": {"phase": "Running", "podIP": ip, "conditions": [condition]},
    }
