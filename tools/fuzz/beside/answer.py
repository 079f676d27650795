"""The loop of every reference: a JSON line asks, a JSON line answers; the first line says that all is there."""

import importlib
import json
import sys


def serve(modules, answer):
    """Answers until the input ends; `modules` are imported first, so that a missing one is named."""
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError:
            print(json.dumps({"missing": name}), flush=True)
            return
    print(json.dumps({"ready": True}), flush=True)
    handle = answer()
    for line in sys.stdin:
        # Halves of surrogate pairs go both ways as escapes.
        print(json.dumps(handle(json.loads(line))), flush=True)
