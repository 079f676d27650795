import { assert, assertEquals } from "@std/assert";
import { getFormat } from "../../../quant/mod.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { symbol } from "../../graph/dim/mod.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { verify } from "../../graph/verify.ts";
import { tensorInMemory } from "../../run/case_graph.ts";
import { answersOf } from "../../run/kernel_choice.ts";
import { LEAST_WASM, WASM_KERNELS } from "../../run/wasm/kernel_table.ts";
import { optimize } from "../passes.ts";
import type { PassContext } from "./pass.ts";
import { plan } from "../planner.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import { createWasmBackend } from "../../run/wasm/backend.ts";
import { TOY_LIMITS, toyDecoder } from "../../../tests/support/toy_decoder.ts";
import { pickRowsEarly } from "./pick_rows_early.ts";

const WIDTH = 64;
const PASSES: PassContext = {
  precision: "fast",
  hasKernel: () => true,
  takes: answersOf(WASM_KERNELS, LEAST_WASM).takes,
};
const M = symbol("M", { max: 8 }), L = symbol("L", { min: 0 });

/** A feed-forward block with its residual sum behind something that mixes rows, and picked rows of it. */
function blockGraph(observed?: "sum" | "hidden", isScaled = true): Graph {
  const builder = createGraphBuilder("block", getOp);
  const random = createCaseRandom(3);
  const matrix = (name: string) => {
    const record = getFormat("Q8_0");
    const bytes = new Uint8Array(WIDTH * WIDTH / record.blockSize * record.blockBytes);
    record.encode!(random.normal(WIDTH * WIDTH), bytes);
    return builder.weight(
      name,
      tensorInMemory(name, { format: "Q8_0", shape: [WIDTH, WIDTH], bytes }),
    );
  };
  const one = (op: string, inputs: Value[], name: string, attributes = {}) =>
    builder.op(op, inputs, attributes, name)[0]!;
  const rows = builder.input("rows", [L], "i32");
  const x = one("softmax", [builder.input("x", [M, WIDTH], "f32")], "mixed", { axis: 0 });
  const gain = builder.constant("gain", Float32Array.from({ length: WIDTH }, (_, i) => 1 + i / 64));
  const normed = one("norm", [x, gain], "norm", { epsilon: 1e-5, base: 0 });
  const gate = one("matmul", [normed, matrix("gate")], "gate");
  const raw = one("matmul", [normed, matrix("up")], "up");
  const scales = isScaled && builder.input("scales", [M, 1], "f32");
  const up = scales ? one("binary", [raw, scales], "scaled", { kind: "mul" }) : raw;
  const hidden = one("glu", [gate, up], "hidden", { activation: "silu" });
  const sum = one("binary", [x, one("matmul", [hidden, matrix("down")], "down")], "sum", {
    kind: "add",
  });
  builder.output("logits", one("select_rows", [sum, rows], "picked"));
  if (observed) builder.output(observed, observed === "sum" ? sum : hidden);
  return builder.build();
}

async function logitsOf(
  backend: ReturnType<typeof createWasmBackend> | ReturnType<typeof createReferenceBackend>,
  graph: Graph,
  rows: readonly number[],
): Promise<Float32Array> {
  const planned = plan(graph, { limits: { M: 7, L: Math.max(1, rows.length) } });
  const executable = await backend.prepare(planned, { slots: 1 });
  const random = createCaseRandom(5);
  executable.input("x").set(random.normal(7 * WIDTH) as never);
  executable.input("scales").set(random.normal(7) as never);
  executable.input("rows").set(rows as never);
  await executable.run({ M: 7, L: rows.length });
  const logits = executable.output("logits") as Float32Array;
  const result = logits.slice(0, rows.length * WIDTH);
  executable.dispose();
  return result;
}

const opsOf = ({ nodes }: Graph) => nodes.map(({ op }) => op);

Deno.test("picked rows have the same bits, whether they are picked early or late", async () => {
  for (const precision of ["fast", "exact"] as const) {
    const late = optimize(blockGraph(), { context: { ...PASSES, precision } });
    const early = optimize(
      blockGraph(),
      {
        context: { ...PASSES, precision, picksRowsEarly: true },
        observe: (_, graph) => verify(graph, getOp),
      },
    );
    assertEquals(opsOf(late).at(-1), "select_rows");
    const picks = opsOf(early).map((op, i) => op === "select_rows" ? i : -1).filter((i) => i >= 0);
    assertEquals(picks.length, 2); // of what the block reads, and of the scales
    assert(picks.every((i) => i < opsOf(early).findIndex((op) => op.startsWith("glu"))));
    assertEquals(early.nodes.at(-1)!.outputs[0]!.shape, [L, WIDTH]);
    for (const rows of [[], [6], [0, 3], [5, 5, 0], [0, 1, 2, 3, 4, 5, 6]]) {
      const expected = await logitsOf(createReferenceBackend(), late, rows);
      assertEquals(expected.some((value) => value !== 0), rows.length > 0);
      assertEquals(await logitsOf(createReferenceBackend(), early, rows), expected);
      for (const threads of [1, 2]) {
        const backend = () => createWasmBackend({ threads });
        assertEquals(
          await logitsOf(backend(), early, rows),
          await logitsOf(backend(), late, rows),
        );
      }
    }
  }
});

Deno.test("rows that something else reads are all computed", () => {
  const early = { ...PASSES, picksRowsEarly: true };
  const sum = blockGraph("sum"); // an output: nothing is left to gain
  assertEquals(pickRowsEarly.run(sum, early), sum);
  const { nodes } = pickRowsEarly.run(blockGraph("hidden"), early);
  const rowsOf = (name: string) => nodes.find((node) => node.name === name)!.outputs[0]!.shape[0];
  assertEquals(["gate", "up", "hidden", "down", "sum"].map(rowsOf), [M, M, M, L, L]);
});

Deno.test("where copies cost, rows are picked where one copy is enough", () => {
  const once = { ...PASSES, picksRowsEarly: "once" } as const;
  const graph = blockGraph(undefined, false);
  const { nodes } = pickRowsEarly.run(graph, once);
  assertEquals(opsOf({ nodes } as Graph).slice(0, 3), ["softmax", "select_rows", "norm"]);
  assertEquals(nodes.length, graph.nodes.length);
  assertEquals(nodes.at(-1)!.outputs[0]!.shape, [L, WIDTH]);
  const scaled = blockGraph(); // scales are a second copy
  assertEquals(pickRowsEarly.run(scaled, once), scaled);
});

Deno.test("nothing changes on a device that has to pay for copies", () => {
  const graph = blockGraph();
  assertEquals(pickRowsEarly.run(graph, PASSES), graph);
  assert(pickRowsEarly.run(graph, { ...PASSES, picksRowsEarly: true }) !== graph);
});

Deno.test("the last attention has the rows that are wanted, and stores those of all", async () => {
  const graph = toyDecoder("f32");
  const context = { ...PASSES, picksRowsEarly: "once", takes: () => true } as const;
  const picked = pickRowsEarly.run(graph, context);
  verify(picked, getOp);
  const rowsOf = ({ nodes }: Graph, wanted: string) =>
    nodes.filter(({ op }) => op === wanted).map(({ outputs }) => outputs[0]!.shape[0]);
  const [M, L] = [graph.inputs[0]!.shape[0], graph.inputs[3]!.shape[0]];
  assertEquals(rowsOf(picked, "attention"), [M, L]);
  assertEquals(rowsOf(picked, "select_rows"), [L]);
  const refused = { ...context, takes: ({ op }: { op: string }) => op !== "attention" };
  assertEquals(rowsOf(pickRowsEarly.run(graph, refused), "attention"), [M, M]);
  const results = [graph, picked].map(async (one) => {
    const planned = plan(one, { limits: TOY_LIMITS });
    const executable = await createReferenceBackend().prepare(planned, { slots: 2 });
    const seen: Float32Array[] = [];
    for (const slot of [executable.openSlot(), executable.openSlot()]) {
      for (const [positions, rows] of [[[0, 1, 2, 3], []], [[4, 5, 6], [2, 0]], [[7], [0]]]) {
        executable.input("tokens").set(positions!.map((at) => 3 * at + slot) as never);
        executable.input("positions").set(positions as never);
        executable.input("slots").set(positions!.map(() => slot) as never);
        executable.input("logit_rows").set(rows as never);
        const L = rows!.length;
        await executable.run({ M: positions!.length, L });
        seen.push((executable.output("logits") as Float32Array).slice(0, 50 * L));
      }
    }
    executable.dispose();
    return seen;
  });
  assertEquals(await results[1], await results[0]);
});
