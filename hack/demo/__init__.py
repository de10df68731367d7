"""The demo: two clusters, an operator, routers and engines; a workload, two faults, a summary and a picture.

`make demo` runs it. Everything it shows is read from what really runs: the API servers, the routers'
reports and the engines' own counters.
"""
