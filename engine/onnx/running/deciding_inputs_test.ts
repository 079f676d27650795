import { assertEquals } from "@std/assert";
import { longs, writeOnnx } from "../../../tests/support/write_onnx.ts";
import { readOnnx } from "../file/open_onnx.ts";
import { prepareGraph } from "../derivation/prepare.ts";
import type { HostTensor } from "../../ops/host_tensor.ts";
import { isHostTensor } from "../derivation/tensor.ts";
import { memorySource } from "../../io.ts";
import { openDevice } from "../../run/devices.ts";
import { decidingInputs } from "./deciding_inputs.ts";
import { openGraph } from "./open_graph.ts";

const branch = (op: string) => ({
  g: {
    inputs: [],
    outputs: [["out", 1, ["n"]]] as const,
    nodes: [{ op, inputs: ["x"], outputs: ["out"] }],
  },
});

/** x is negated at a rate of 16000, else rectified. */
function model(condition: "rate" | "data" | "shape") {
  const before = {
    rate: [{ op: "Equal", inputs: ["rate", "usual"], outputs: ["c"] }],
    data: [
      { op: "ReduceSum", inputs: ["x"], outputs: ["s"], attributes: { keepdims: { i: 0 } } },
      { op: "Cast", inputs: ["s"], outputs: ["c"], attributes: { to: { i: 9 } } },
    ],
    shape: [
      { op: "Size", inputs: ["x"], outputs: ["s"] },
      { op: "Equal", inputs: ["s", "rate"], outputs: ["c"] },
    ],
  }[condition];
  const file = writeOnnx({
    inputs: [["x", 1, ["n"]], ["rate", 7, []]],
    outputs: [["y", 1, ["n"]]],
    initializers: [{ name: "usual", type: 7, dims: [], raw: longs(16000) }],
    nodes: [...before, {
      op: "If",
      inputs: ["c"],
      outputs: ["y"],
      attributes: { then_branch: branch("Neg"), else_branch: branch("Relu") },
    }],
  });
  return readOnnx(memorySource("if.onnx", file));
}

const DEVICE = await openDevice("reference", {});

function open(condition: "rate" | "data" | "shape") {
  const options = { device: DEVICE, reference: DEVICE.backend, maxBytes: 2 ** 20, limits: {} };
  const graph = openGraph(model(condition), options);
  const run = async (x: readonly number[], rate: number) => {
    const { y } = Object.fromEntries(
      await graph.run(
        new Map<string, HostTensor>([
          ["x", { dtype: "f32", shape: [x.length], data: Float32Array.from(x) }],
          ["rate", { dtype: "i64", shape: [], data: BigInt64Array.of(BigInt(rate)) }],
        ]),
      ),
    );
    return isHostTensor(y) ? [...y.data] : [];
  };
  return { graph, run };
}

Deno.test("integers that an If compares decide; floats, and sizes of them, do not", () => {
  const found = (["rate", "data", "shape"] as const).map((condition) => {
    const { functions, file, graph, opsets } = model(condition);
    return decidingInputs(prepareGraph({ functions, file }, { graph, opsets }));
  });
  assertEquals(found, [["rate"], [], ["rate"]]);
});

for (const condition of ["rate", "shape"] as const) {
  Deno.test(`each value that decides has its branch, also more than are kept: ${condition}`, async () => {
    const { graph, run } = open(condition);
    const rates = [3, 16000, ...Array(12).keys(), 16000, 3];
    for (const rate of rates) {
      const negated = rate === (condition === "rate" ? 16000 : 3);
      assertEquals(await run([1, -2, 3], rate), negated ? [-1, 2, -3] : [1, 0, 3], `${rate}`);
    }
    assertEquals(await run([1, -2], 16000), condition === "rate" ? [-1, 2] : [1, 0]);
    graph.dispose();
  });
}

Deno.test("a graph derived for a value is one segment without the If", async () => {
  const { graph, run } = open("rate");
  await run([1], 16000);
  assertEquals(graph.reasons, []);
  graph.dispose();
});
