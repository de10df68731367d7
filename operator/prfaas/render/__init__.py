"""Pure builders of everything the operator makes in member clusters, and readers of what it finds there.

Interface for the controller (dicts are Kubernetes objects as JSON; nothing here reads a clock, a file or a
cluster):

- `view.owner_of(pool, hub_id=)`, `view.pool_view(pool, cluster=, profile=, hub_id=, router_image=)` resolve a
  PDPool or PrfaasPool once; all builders take the `PoolView`. `refusal.refusals(view)` says what is wrong
  with it.
- `ownership.owned_by(obj, owner, adopt_from=) -> Ownership` before any apply; `.may_apply`.
`ownership.anchor(view)`
  comes first: its uid is the `anchor_uid` of every other builder. Nothing owns it; deleting it deletes the
  rest.
- `slot.slot_replica_set(view, slot=, role=, drain_token=, anchor_uid=, replicas=, failures=)`,
  `slot.scale_patch(replicas=, failures=)` (merge patch), `slot.drain_token_of(rs)`,
  `slot.dry_run_pod(view, role)`.
- `hashes.revision(view, role)`, `hashes.template_hash(view, role)` -> `RoleWanted.revision/.template` of
the planner;
  `observe.observed_slots(replica_sets, pods, age_seconds=, deleted=, zero_seconds=, loads=)` -> its slots.
- `access.service_account`, `access_role`, `access_role_binding`, `key_secret(view, keys, anchor_uid=)`,
  `access.key_text(random)`; `services.decode_service` (PDPool only).
- `topology.instance_view(pod)`, `topology.topology_of(view, profile=, instances=, remotes=, peers=,
listed=)`;
  `profiles.profile_table(profile)`; `control.control_of(view, route=, links=, topology_generation=)`;
  `tables.renewed(previous, wanted, floor=)` -> table with its next generation or None when nothing changed;
  `tables.table_config_map(view, table, anchor_uid=)` -> ConfigMap or TooLarge;
  `tables.read_table(config_map, kind)`.
"""
