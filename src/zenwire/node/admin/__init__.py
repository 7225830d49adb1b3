"""The admin space: what a node knows and has counted, under ``@/<zid>/<whatami>/**``.

The keys and shapes are the reference's; below ``stats`` are ours. It is there if ``adminspace`` is
``enabled`` in the configuration, and costs nothing until somebody asks.

`space` answers, `answers` has one function for each key of the reference, `counted` the statistics,
`metrics` the same for Prometheus, and `keys` counts apart what goes over the keys that
``stats/filters`` names; `reply` has the words that they share. `session` is what each session
tells itself, under ``@/<zid>/session/**``.
"""
