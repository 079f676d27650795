// What no answer of onnxruntime shows: what is refused, and when; transforms by their numbers in the standard; maps with
// whole numbers; long lists and deep trees.

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { FormatError } from "../../../errors.ts";
import {
  type Attribute,
  floats,
  longs,
  type NodeParts,
  type Port,
  type Tensor,
  writeOnnx,
} from "../../../../tests/support/write_onnx.ts";
import type { GraphTensor, GraphValue } from "../../running/graph_tensor.ts";
import { loadGraph } from "../../running/load_graph.ts";

type Attributes = Readonly<Record<string, Attribute>>;

interface Case {
  readonly op: string;
  readonly attributes: Attributes;
  /** Columns of `x`, which is float32. */
  readonly features?: number;
  readonly version?: number;
}

/** A graph of one node `it`; runs it on `rows` if there are any. */
async function runOp(
  { op, attributes, features = 2, version = 3 }: Case,
  rows?: readonly number[],
): Promise<GraphTensor> {
  const node: NodeParts = {
    ...{ op, name: "it", domain: "ai.onnx.ml", inputs: ["x"], attributes },
    outputs: /Classifier$/.test(op) ? ["y", "z"] : ["y"],
  };
  const ports: Port[] = [["y", 1, ["N", "M"]]];
  const graph = { nodes: [node], inputs: [["x", 1, ["N", features]]] as Port[], outputs: ports };
  const path = await Deno.makeTempFile({ suffix: ".onnx" });
  try {
    await Deno.writeFile(path, writeOnnx(graph, { opsets: { "": 17, "ai.onnx.ml": version } }));
    using loaded = await loadGraph(new URL(`file://${path}`), { device: "reference" });
    if (!rows) return { data: [], dims: [] };
    const x = { data: Float32Array.from(rows), dims: [rows.length / features, features] };
    return (await loaded.run({ x })).y as GraphTensor;
  } finally {
    await Deno.remove(path);
  }
}

const ints = (...values: number[]): Attribute => ({ ints: values });
const numbers = (...values: number[]): Attribute => ({ floats: values });
const words = (...values: string[]): Attribute => ({ strings: values });

/** x0 <= 0.5 ? 1 : (x1 > 2 ? 10 : 100). */
const TREE: Attributes = {
  nodes_treeids: ints(0, 0, 0, 0, 0),
  nodes_nodeids: ints(0, 1, 2, 3, 4),
  nodes_featureids: ints(0, 0, 1, 0, 0),
  nodes_modes: words("BRANCH_LEQ", "LEAF", "BRANCH_GT", "LEAF", "LEAF"),
  nodes_values: numbers(0.5, 0, 2, 0, 0),
  nodes_truenodeids: ints(1, 0, 3, 0, 0),
  nodes_falsenodeids: ints(2, 0, 4, 0, 0),
  n_targets: { i: 1 },
  target_treeids: ints(0, 0, 0),
  target_nodeids: ints(1, 3, 4),
  target_ids: ints(0, 0, 0),
  target_weights: numbers(1, 10, 100),
};

Deno.test("a tree is walked as it reads", async () => {
  const { data, dims, type } = await runOp(
    { op: "TreeEnsembleRegressor", attributes: TREE },
    [0.5, 9, 0.6, 2, 0.6, 2.5, NaN, 3],
  );
  assertEquals([[...data], dims, type], [[1, 100, 10, 10], [4, 1], "float32"]);
});

/** Changed attributes of the tree, and what is said of them. */
const BROKEN_TREES: readonly (readonly [what: string, changed: Attributes, message: RegExp])[] = [
  ["a cycle", { nodes_falsenodeids: ints(2, 0, 0, 0, 0) }, /a tree has a cycle/],
  ["a node that leads to itself", { nodes_truenodeids: ints(0, 0, 3, 0, 0) }, /has a cycle/],
  ["a node that is not there", { nodes_truenodeids: ints(7, 0, 3, 0, 0) }, /tree 0 has no node 7/],
  ["a node twice", { nodes_nodeids: ints(0, 1, 2, 3, 3) }, /node 3 of tree 0 is there twice/],
  ["lists of two lengths", { nodes_values: numbers(0.5, 0) }, /has 5 entries, nodes_values 2/],
  ["a flag too few", { nodes_missing_value_tracks_true: ints(1) }, /5 entries, missing.* 1$/],
  ["a mode nobody knows", {
    nodes_modes: words("BRANCH_LEQ", "LEAF", "BRANCH_MOD", "LEAF", "LEAF"),
  }, /a node is of mode "BRANCH_MOD"/],
  ["a weight of no leaf", { target_nodeids: ints(1, 3, 9) }, /tree 0 has no node 9/],
  ["a target that is not there", { target_ids: ints(0, 0, 1) }, /target 1 of 1/],
  ["a target below 0", { target_ids: ints(0, 0, -1) }, /target -1 of 1/],
  ["more targets than memory", { n_targets: { i: 2 ** 40 } }, /1099511627776 targets: must be/],
  ["a feature below 0", { nodes_featureids: ints(0, 0, -1, 0, 0) }, /reads feature -1/],
  ["base values of nobody", { base_values: numbers(1, 2, 3) }, /3 base values for 1 targets/],
  ["thresholds twice", {
    nodes_values_as_tensor: { t: { type: 1, dims: [5], raw: floats(1, 2, 3, 4, 5) } },
  }, /given twice/],
];

for (const [what, changed, message] of BROKEN_TREES) {
  Deno.test(`${what} is refused by the node's name when a tree is loaded`, async () => {
    const attributes = { ...TREE, ...changed };
    const error = await assertRejects(
      () => runOp({ op: "TreeEnsembleRegressor", attributes }),
      FormatError,
    );
    assertMatch(error.message, /node it \(TreeEnsembleRegressor\)/);
    assertMatch(error.message.split("\n")[0]!, message);
  });
}

/** Other ops whose attributes do not fit one another. */
const BROKEN: readonly (readonly [op: string, attributes: Attributes, message: RegExp])[] = [
  ["LinearRegressor", { coefficients: numbers(1, 2, 3), targets: { i: 2 } }, /3 coeff.* 2 outputs/],
  [
    "LinearClassifier",
    {
      coefficients: numbers(1, 2),
      intercepts: numbers(1),
      classlabels_ints: ints(1, 2, 3),
    },
    /1 scores for 3 classes/,
  ],
  ["LinearClassifier", { coefficients: numbers(1, 2) }, /labels .* none is given/],
  ["SVMRegressor", {
    coefficients: numbers(1, 2),
    rho: numbers(0),
    n_supports: { i: 3 },
    support_vectors: numbers(1, 2, 3, 4, 5, 6),
  }, /2 coefficients for 3 support vectors/],
  ["SVMClassifier", {
    coefficients: numbers(1, 2),
    rho: numbers(0),
    vectors_per_class: ints(2, 1),
    support_vectors: numbers(1, 2, 3),
    classlabels_ints: ints(0, 1),
  }, /coefficients has 2 entries: must have 3/],
  ["Scaler", { scale: numbers(1, 2), offset: numbers(1) }, /1 offsets for 2 scales/],
  ["LabelEncoder", {
    keys_int64s: ints(1, 2),
    values_int64s: ints(1),
  }, /2 keys for 1 values/],
  ["LabelEncoder", { keys_int64s: ints(1) }, /values must be given once: 0 lists are/],
  ["OneHotEncoder", { cats_int64s: ints(1), cats_strings: words("a") }, /both are given/],
  ["ZipMap", { classlabels_int64s: ints(1, 1) }, /a label is there twice/],
  ["CastMap", { max_map: { i: 2 ** 40 } }, /max_map is 1099511627776/],
];

for (const [op, attributes, message] of BROKEN) {
  Deno.test(`${op} whose attributes do not fit is refused: ${message.source}`, async () => {
    const error = await assertRejects(() => runOp({ op, attributes, version: 4 }), FormatError);
    assertMatch(error.message, new RegExp(`node it \\(${op}\\)`));
    assertMatch(error.message, message);
  });
}

Deno.test("a transform that is none is refused with those that there are", async () => {
  const attributes = { ...TREE, post_transform: { s: "TANH" } };
  const error = await assertRejects(() => runOp({ op: "TreeEnsembleRegressor", attributes }));
  assertMatch((error as Error).message, /it: .*"post_transform" must be one of NONE, .*"TANH"/);
});

Deno.test("rows of a wrong width are an error that says how many features there are", async () => {
  const narrow = { op: "TreeEnsembleRegressor", attributes: TREE, features: 1 };
  const error = await assertRejects(() => runOp(narrow, [1, 2]), RangeError);
  assertMatch(error.message, /node it .*: a row has 1 features: it must have 2 or more/);
  const attributes = { coefficients: numbers(1, 2) };
  const wide = { op: "LinearRegressor", attributes, features: 3 };
  const other = await assertRejects(() => runOp(wide, [1, 2, 3]), RangeError);
  assertMatch(other.message, /a row has 3 features: it must have 2$/);
});

/** Two leaves for two targets: 1 for the first where x0 <= 0, 2 for the second elsewhere. */
function stump(transform: number, changed: Attributes = {}): Case {
  const tensor = (t: Tensor): Attribute => ({ t });
  return {
    op: "TreeEnsemble",
    version: 5,
    attributes: {
      tree_roots: ints(0),
      n_targets: { i: 2 },
      post_transform: { i: transform },
      nodes_modes: tensor({ type: 2, dims: [1], raw: Uint8Array.of(0) }),
      nodes_splits: tensor({ type: 1, dims: [1], raw: floats(0) }),
      nodes_featureids: ints(0),
      nodes_truenodeids: ints(0),
      nodes_falsenodeids: ints(1),
      nodes_trueleafs: ints(1),
      nodes_falseleafs: ints(1),
      leaf_targetids: ints(0, 1),
      leaf_weights: tensor({ type: 1, dims: [2], raw: floats(1, 2) }),
      ...changed,
    },
  };
}

Deno.test("TreeEnsemble's transforms have the numbers of the standard: 1 is SOFTMAX, 2 LOGISTIC", async () => {
  const rounded = async (transform: number) =>
    Array.from((await runOp(stump(transform), [-1, 0, 1, 0])).data as Float32Array)
      .map((value) => Number(value.toFixed(4)));
  assertEquals(await rounded(0), [1, 0, 0, 2]);
  assertEquals(await rounded(1), [0.7311, 0.2689, 0.1192, 0.8808]);
  assertEquals(await rounded(2), [0.7311, 0.5, 0.5, 0.8808]);
});

Deno.test("indices of TreeEnsemble that lead nowhere are refused", async () => {
  for (
    const [changed, message] of [
      [{ nodes_falsenodeids: ints(2) }, /there is no leaf 2: there are 2/],
      [{ tree_roots: ints(1) }, /there is no node 1: there are 1/],
      [{ nodes_falseleafs: ints(0), nodes_falsenodeids: ints(0) }, /a tree has a cycle/],
      [{ post_transform: { i: 5 } }, /5 is no post_transform/],
      [{ aggregate_function: { i: -1 } }, /-1 is no aggregate function/],
      [{ nodes_trueleafs: ints() }, /nodes_trueleafs 0/],
    ] as const
  ) {
    const error = await assertRejects(() => runOp(stump(0, changed)), FormatError);
    assertMatch(error.message, message);
  }
});

Deno.test("an operator set of ai.onnx.ml that is younger than this build is refused", async () => {
  const error = await assertRejects(() => runOp({ ...stump(0), version: 6 }));
  assertMatch((error as Error).message, /operator set 6 of ai.onnx.ml; the newest known is 5/);
});

Deno.test("a deep tree is checked and walked without a stack", async () => {
  // A comb: every node leads to a leaf or to the next node.
  const depth = 20_000, all = Array.from({ length: depth }, (_, i) => i);
  const half = depth / 2;
  const attributes: Attributes = {
    nodes_treeids: ints(...all.map(() => 0)),
    nodes_nodeids: ints(...all),
    nodes_featureids: ints(...all.map(() => 0)),
    nodes_modes: words(...all.map((i) => i < half - 1 ? "BRANCH_LEQ" : "LEAF")),
    nodes_values: numbers(...all),
    nodes_truenodeids: ints(...all.map((i) => i < half - 1 ? half + i : 0)),
    nodes_falsenodeids: ints(...all.map((i) => i < half - 1 ? i + 1 : 0)),
    n_targets: { i: 1 },
    target_treeids: ints(...all.slice(half - 1).map(() => 0)),
    target_nodeids: ints(...all.slice(half - 1)),
    target_ids: ints(...all.slice(half - 1).map(() => 0)),
    target_weights: numbers(...all.slice(half - 1)),
  };
  const { data } = await runOp(
    { op: "TreeEnsembleRegressor", attributes, features: 1 },
    [0, 5.5, 1e9],
  );
  assertEquals([...data], [half, half + 6, half - 1]);
});

Deno.test("a packed list of more numbers than a call takes is read whole", async () => {
  const features = 200_000, ones = Array<number>(features).fill(1);
  const attributes = { coefficients: { floats: ones } };
  assertEquals([...(await runOp({ op: "LinearRegressor", attributes, features }, ones)).data], [
    features,
  ]);
});

Deno.test("a map of whole numbers goes in as a Map, and a Map is refused where none is declared", async () => {
  const path = await Deno.makeTempFile({ suffix: ".onnx" });
  const parts = {
    nodes: [{
      op: "DictVectorizer",
      domain: "ai.onnx.ml",
      inputs: ["x"],
      outputs: ["y"],
      attributes: { string_vocabulary: words("a", "q") },
    }],
    inputs: [["x", { key: 8, value: 7 }, []]] as Port[],
    outputs: [["y", 7, [1, 2]]] as Port[],
  };
  try {
    await Deno.writeFile(path, writeOnnx(parts, { opsets: { "": 17, "ai.onnx.ml": 1 } }));
    using graph = await loadGraph(path, { device: "reference" });
    assertEquals(graph.inputs[0]!.type, "map");
    const run = async (x: GraphValue) => (await graph.run({ x })).y as GraphTensor;
    const { data, dims } = await run(new Map([["b", 2n], ["a", 2n ** 60n]]));
    assertEquals([[...data], dims], [[2n ** 60n, 0n], [1, 2]]);
    const error = await assertRejects(() => run({ data: longs(1), dims: [8] }), TypeError);
    assertMatch(error.message, /"x" is u8\[8\], the model expects map of string to i64/);
    const other = await assertRejects(() => run(new Map([[1n, 2n]])), TypeError);
    assertMatch(other.message, /"1" in input "x" must be of string/);
  } finally {
    await Deno.remove(path);
  }
});
