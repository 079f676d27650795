// Classifies rows by a model of scikit-learn, XGBoost or LightGBM that was exported to ONNX, such as this one:
//
//   import numpy, skl2onnx, sklearn.datasets, sklearn.ensemble
//   rows, kinds = sklearn.datasets.load_iris(return_X_y=True)
//   forest = sklearn.ensemble.RandomForestClassifier().fit(rows, kinds)
//   model = skl2onnx.to_onnx(forest, rows[:1].astype(numpy.float32))
//   open("iris.onnx", "wb").write(model.SerializeToString())
//
//   deno run --allow-read examples/classic_model.ts iris.onnx 5.1,3.5,1.4,0.2 6.7,3.0,5.2,2.3

import { type GraphMap, type GraphTensor, loadGraph } from "../mod.ts";

const [file = "iris.onnx", ...given] = Deno.args;
const rows = given.map((row) => row.split(",").map(Number));

using graph = await loadGraph(file);
const [input] = graph.inputs, [label, probability] = graph.outputs;
const data = Float32Array.from(rows.flat());
const results = await graph.run({
  [input!.name]: { data, dims: [rows.length, rows[0]?.length ?? 0] },
});

// Strings or whole numbers; beside them a Map of every label to its probability, or a tensor of them.
const labels = (results[label!.name] as GraphTensor).data;
for (const [i, row] of rows.entries()) {
  const maps = probability && results[probability.name];
  const likely = Array.isArray(maps)
    ? [...maps[i] as GraphMap].map(([name, p]) => `${name}: ${Number(p).toFixed(3)}`).join(", ")
    : "";
  console.log(`${row.join(" ")} → ${labels[i]}  ${likely}`);
}
