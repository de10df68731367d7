"""The engine stand-in: behaves like vLLM (NIXL) or SGLang in what a router and an operator can see.

It computes nothing; it waits as long as a measured engine would, keeps the same books (queue, slots, prefix
cache, KV held under a lease) and moves real bytes over TCP. Where a real engine refuses or loses a hand-off,
so does this one: a router that passes here by sloppiness would fail there. It must stay light, since a dozen
run on a laptop: no pydantic, numpy or Kubernetes client is imported.
"""
