"""The dashboard: recordings looked into with a browser, from this machine alone.

```text
  browser ──► Access (host, origin, token) ──► Flask ─┬─► Dash: pages ──► figures, metrics, report, explanation
                                                      └─► downloads: CSV behind a figure, files of a recording
```

It shows the figures of :mod:`mqttlab.figures` and the numbers of :mod:`mqttlab.metrics` and has none of its own; what
it adds is where they stand. The address of a page holds all of its state. Nothing that a page needs comes from
another machine.

:mod:`mqttlab.dashboard.server` has the program. It needs the packages of ``mqttlab[dashboard]``, which nothing else of
mqttlab imports.
"""
