"""Runs ONNX models for tools/fuzz/graphs/peer.ts: one JSON line asks, one answers.

Asked: {"model": base64, "runs": [{name: {"type", "shape", "data": base64}}]}. Answered: {"runs": [...]} of the
same form, or {"error": text}. Nothing is optimised: what is compared is what the graph says.
"""

import base64
import json
import sys

import numpy as np
import onnxruntime as ort

TYPES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "u8": np.uint8, "i16": np.int16,
    "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "bool": np.bool_,
}
NAMES = {np.dtype(type): name for name, type in TYPES.items()}


def decode(value):
    data = np.frombuffer(base64.b64decode(value["data"]), dtype=TYPES[value["type"]])
    return data.reshape(value["shape"])


def encode(array):
    # An array of rank 0 stays one: ascontiguousarray() would give it a dimension.
    data = base64.b64encode(array.tobytes()).decode()
    return {"type": NAMES[array.dtype], "shape": list(array.shape), "data": data}


def answer(request):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    model = base64.b64decode(request["model"])
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    results = []
    for run in request["runs"]:
        values = session.run(names, {name: decode(value) for name, value in run.items()})
        results.append({name: encode(np.asarray(value)) for name, value in zip(names, values)})
    return {"runs": results}


print(json.dumps({"version": ort.__version__}), flush=True)
for line in sys.stdin:
    try:
        reply = answer(json.loads(line))
    except Exception as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(reply), flush=True)
