"""onnxruntime, native, as the peer of `deno task bench onnx`: orders and replies are JSON lines, as in
bench/support/runner.ts; the rules of inputs are those of inputs.ts.

python native.py FILE THREADS INPUTS
"""
import json
import sys
import time

import numpy as np
import onnxruntime

COMPARED = 512


def elements(rule):
    count = int(np.prod(rule["dims"], dtype=np.int64))
    i = np.arange(count, dtype=np.int64)
    fill = rule["fill"]
    width = rule["dims"][-1] if rule["dims"] else 1
    column, row = i % width, i // width
    ink = ((column * 7 + row // 5 * 3) // 4 % 3 == 0) & (row % 64 < 20) & (column % 160 < 120)
    values = {
        "ids": lambda: 1000 + i * 7919 % 20000,
        "wave": lambda: np.sin(i * 0.013),
        "strokes": lambda: np.where(ink, -1, 1),
        "zero": lambda: i * 0,
        "one": lambda: i * 0 + 1,
    }.get(fill, lambda: i * 0 + fill)()
    return values.astype(rule["type"]).reshape(rule["dims"])


def main():
    path, threads, rules = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    feeds = {rule["name"]: elements(rule) for rule in rules}
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    session.run(None, feeds)
    print(json.dumps({"loadMs": (time.perf_counter() - start) * 1000}), flush=True)
    for line in sys.stdin:
        runs = json.loads(line)["runs"]
        start = time.perf_counter()
        for _ in range(runs):
            results = session.run(None, feeds)
        ms = (time.perf_counter() - start) / runs * 1000
        flat = results[0].ravel()
        vector = flat[:: flat.size // COMPARED | 1].astype(float).tolist()
        print(json.dumps({"ms": ms, "vector": vector}), flush=True)


main()
