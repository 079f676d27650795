// `troodon plan MODEL --device gpu` as a user calls it.

import { assert, assertEquals, assertMatch } from "@std/assert";
import type { DispatchReport } from "../engine/cli/plan_gpu.ts";
import type { GraphDispatchReport } from "../engine/cli/plan_gpu_graph.ts";
import { sharedGpu } from "../gpu/shared.ts";
import { storagesOf } from "../gpu/storage_choice.ts";
import { assertRefused, troodon } from "./support/cli.ts";
import { adapterNeed, gpuTest } from "./support/gpu.ts";
import { pullModel } from "../engine/formats/hub/pull.ts";
import { modelNeed, TINY_LLAMA } from "./support/models.ts";
import { testWith } from "./support/skip.ts";
import { floats, longs, type NodeParts, type Tensor, writeOnnx } from "./support/write_onnx.ts";

const PLAN = ["plan", TINY_LLAMA, "--device", "gpu"];

gpuTest("plan counts the dispatches of a token by layer and in all", async () => {
  const permissions = [`--allow-read=${TINY_LLAMA}`];
  const [text, json] = await Promise.all(
    [[], ["--json"]].map((more) => troodon([...PLAN, ...more, "--context", "64"], { permissions })),
  );
  assertEquals([text!.code, json!.code], [0, 0], text!.err + json!.err);
  const reports = JSON.parse(json!.out) as DispatchReport[];
  assertEquals(reports.map(({ position }) => position), [0, 63]);
  for (const { layers, dispatches } of reports) {
    assertEquals(layers.reduce((sum, { count }) => sum + count, 0), dispatches);
    for (const { layer, count } of layers) if (layer) assert(count > 0 && count <= 9, layer);
  }
  assertMatch(text!.out, new RegExp(`in all +${reports[0]!.dispatches} dispatches a token`));
});

/** A convolution and a softmax over images of this height. */
function network(height: number | string): Uint8Array {
  const weights = Array.from({ length: 8 * 3 * 9 }, (_, i) => Math.sin(i));
  return writeOnnx({
    inputs: [["x", 1, [1, 3, height, 8]]],
    outputs: [["y", 1, [1, 8, height, 8]]],
    initializers: [{ name: "w", type: 1, dims: [8, 3, 3, 3], raw: floats(...weights) }],
    nodes: [
      {
        ...{ op: "Conv", inputs: ["x", "w"], outputs: ["c"] },
        attributes: { pads: { ints: [1, 1, 1, 1] } },
      },
      { op: "Softmax", inputs: ["c"], outputs: ["y"] },
    ],
  });
}

/** Layers of a small encoder as exporters write them: heads by Reshape and Transpose, a mask added to the scores. */
function encoder(layers: number): Uint8Array {
  const nodes: NodeParts[] = [], initializers: Tensor[] = [];
  let count = 0;
  const constant = (dims: readonly number[], numbers: readonly number[], whole = false) => {
    const name = `w${count++}`, raw = whole ? longs(...numbers) : floats(...numbers);
    initializers.push({ name, type: whole ? 7 : 1, dims, raw });
    return name;
  };
  const add = (op: string, inputs: readonly string[], attributes: NodeParts["attributes"] = {}) => {
    const name = `v${count++}`;
    nodes.push({ op, inputs, outputs: [name], attributes });
    return name;
  };
  const matrix = () => constant([32, 32], Array.from({ length: 1024 }, (_, i) => Math.sin(i) / 9));
  const swap = { perm: { ints: [0, 2, 1, 3] } };
  let x = "x";
  for (let layer = 0; layer < layers; layer++) {
    const [q, k, v] = Array.from({ length: 3 }, () => {
      const split = add("Reshape", [
        add("MatMul", [x, matrix()]),
        constant([4], [1, 6, 4, 8], true),
      ]);
      return add("Transpose", [split], swap);
    }) as [string, string, string];
    const turned = add("Transpose", [k], { perm: { ints: [0, 1, 3, 2] } });
    const scores = add("Div", [add("MatMul", [q, turned]), constant([], [8 ** 0.5])]);
    const mixed = add("MatMul", [add("Softmax", [add("Add", [scores, "mask"])]), v]);
    const rows = add("Reshape", [add("Transpose", [mixed], swap), constant([3], [1, 6, 32], true)]);
    const sum = add("Add", [x, add("MatMul", [rows, matrix()])]);
    x = add("LayerNormalization", [sum, constant([32], Array(32).fill(1))]);
  }
  return writeOnnx({
    inputs: [["x", 1, [1, 6, 32]], ["mask", 1, [1, 1, 1, 6]]],
    outputs: [[x, 1, [1, 6, 32]]],
    ...{ initializers, nodes },
  });
}

gpuTest(
  "attention that an exporter wrote out is one dispatch, and a layer eleven at most",
  async () => {
    const file = await Deno.makeTempFile({ suffix: ".onnx" });
    try {
      await Deno.writeFile(file, encoder(3));
      const permissions = [`--allow-read=${file}`];
      const json = await troodon(["plan", file, "--device", "gpu", "--json"], { permissions });
      assertEquals(json.code, 0, json.err);
      const [{ nodes, dispatches, host, parts }] = JSON.parse(json.out) as [GraphDispatchReport];
      assertEquals([host, parts], [[], 1]);
      const counts = nodes.filter(({ kernel }) => /attention/.test(kernel)).map(({ count }) =>
        count
      );
      assertEquals(counts, [1, 1, 1]);
      // Four products of up to two dispatches each, attention, sum and norm.
      assert(dispatches <= 3 * 11, `${dispatches} dispatches`);
    } finally {
      await Deno.remove(file);
    }
  },
);

testWith(
  [adapterNeed, modelNeed("minilm-int8")],
  "the host waits once for MiniLM, whose layers are 19 dispatches each",
  async () => {
    const path = await pullModel("minilm-int8", { offline: true });
    const { code, out, err } = await troodon([
      ...["plan", path, "--device", "gpu", "--json"],
      ...["--bind", "batch=1,sequence=32"],
    ]);
    assertEquals(code, 0, err);
    const [{ parts, dispatches }] = JSON.parse(out) as [GraphDispatchReport];
    assertEquals(parts, 1);
    assert(dispatches <= 118, `${dispatches} dispatches`);
  },
);

gpuTest("plan counts the dispatches, copies and textures of an ONNX graph", async () => {
  const file = await Deno.makeTempFile({ suffix: ".onnx" });
  const permissions = [`--allow-read=${file}`];
  const planned = (...more: string[]) =>
    troodon(["plan", file, "--device", "gpu", ...more], { permissions });
  try {
    await Deno.writeFile(file, network(6));
    const json = await planned("--json");
    assertEquals(json.code, 0, json.err);
    const [report] = JSON.parse(json.out) as GraphDispatchReport[];
    const { nodes, dispatches, copies, textureBytes, host, parts } = report!;
    assertEquals([nodes.length, parts, host], [2, 1, []]);
    assertEquals(nodes.reduce((sum, { count }) => sum + count, 0), dispatches);
    const { conv } = storagesOf((await sharedGpu()).capabilities);
    const moved = conv ? [conv.source, conv.target].filter((kind) => kind !== "planes") : [];
    assertEquals(copies, moved.length);
    assertEquals(textureBytes > 0, conv !== undefined);

    await Deno.writeFile(file, network("H"));
    const text = await planned("--bind", "H=6");
    assertMatch(text.out, /in all +\d+ dispatches in 1 part, 0 of them copies/);
    assertRefused(await planned("--bind", "H=6,Q=1"), 1, /no input has a dim named Q/);
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("options of plan that do not go together are refused", async () => {
  assertRefused(await troodon([...PLAN, "--bind", "N=1"]), 2, /--bind does not go with --device/);
  assertRefused(
    await troodon(["plan", TINY_LLAMA, "--context", "8"]),
    2,
    /--context goes with --device gpu/,
  );
});
