"""The bundled evaluate modules, packaged as evidep.metrics. See `evidep.metric_path` and `evidep.register_modules`."""
