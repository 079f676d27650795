import { assertEquals, assertThrows } from "@std/assert";
import { getFormat } from "../../../quant/mod.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { symbol } from "../../graph/dim/mod.ts";
import type { Graph } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { verify } from "../../graph/verify.ts";
import type { Backend } from "../../run/backend.ts";
import { tensorInMemory } from "../../run/case_graph.ts";
import { optimize } from "../passes.ts";
import type { PassContext } from "./pass.ts";
import { plan } from "../planner.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import { createWasmBackend } from "../../run/wasm/backend.ts";

const STRICT: PassContext = {
  precision: "strict",
  takes: () => true,
  hasKernel: () => true,
};
const M = symbol("M", { max: 8 });

/** Two products of one input with one weight of a format, and one with float weights. */
function graphOf(format: string): Graph {
  const builder = createGraphBuilder("strict", getOp);
  const random = createCaseRandom(3);
  const weight = (name: string, format: string, rows: number, columns: number) => {
    const record = getFormat(format);
    const bytes = new Uint8Array(rows * columns / record.blockSize * record.blockBytes);
    record.encode!(random.normal(rows * columns), bytes);
    return builder.weight(name, tensorInMemory(name, { format, shape: [rows, columns], bytes }));
  };
  const x = builder.input("x", [M, 512], "f32");
  const w = weight("w", format, 37, 512), v = weight("v", "F32", 256, 512);
  const [a] = builder.op("matmul", [x, w], {}, "first");
  const [b] = builder.op(
    "matmul",
    [builder.op("unary", [x], { kind: "scale", alpha: 3 }, "scaled")[0], w],
    {},
    "second",
  );
  builder.output("a", a!);
  builder.output("b", b!);
  builder.output("c", builder.op("matmul", [x, v], {}, "third")[0]!);
  return builder.build();
}

async function outputs(backend: Backend, graph: Graph): Promise<Float32Array[]> {
  const executable = await backend.prepare(plan(graph, { limits: { M: 8 } }), { slots: 1 });
  executable.input("x").set(createCaseRandom(5).normal(5 * 512) as never);
  await executable.run({ M: 5 });
  const names = ["a", "b"];
  const results = names.map((name) =>
    Float32Array.from((executable.output(name) as Float32Array).subarray(0, 5 * 37))
  );
  executable.dispose();
  return results;
}

Deno.test("strict products have the same bits on the reference and on WASM", async () => {
  const graph = optimize(graphOf("LF8"), {
    context: STRICT,
    observe: (_, result) => verify(result, getOp),
  });
  const expected = await outputs(createReferenceBackend(), graph);
  for (const threads of [1, 2]) {
    assertEquals(await outputs(createWasmBackend({ threads }), graph), expected);
  }
});

Deno.test("only products with LF8 weights are strict, and share a weight's bytes", () => {
  const { nodes } = optimize(graphOf("LF8"), { context: STRICT });
  const products = nodes.filter(({ inputs: [x] }) => x!.dtype === "u8");
  assertEquals(products.length, 2);
  assertEquals(products[0]!.inputs[1], products[1]!.inputs[1]);
  assertEquals(products[0]!.inputs[1]!.shape, [37, 520]);
  assertEquals(nodes.filter(({ op }) => op === "matmul").length, 2 + 1);
});

Deno.test("strict precision is refused without LF8 weights and without a kernel for them", () => {
  assertThrows(
    () => optimize(graphOf("Q8_0"), { context: STRICT }),
    RangeError,
    "no matrix in LF8",
  );
  const without = { ...STRICT, takes: () => false };
  assertThrows(
    () => optimize(graphOf("LF8"), { context: without }),
    RangeError,
    "device wasm or reference",
  );
  // A device that goes row by row has no need of them, where no weight is in LF8.
  const byRow = { ...without, goesRowByRow: true };
  assertThrows(() => optimize(graphOf("LF8"), { context: byRow }), RangeError);
  assertEquals(
    optimize(graphOf("Q8_0"), { context: byRow }).nodes.map(({ op }) => op),
    optimize(graphOf("Q8_0"), { context: { ...without, precision: "exact" } }).nodes
      .map(({ op }) => op),
  );
});
