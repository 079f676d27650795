import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { getFormat } from "../../../quant/mod.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { symbol } from "../../graph/dim/mod.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { verify } from "../../graph/verify.ts";
import type { Backend } from "../../run/backend.ts";
import { tensorInMemory } from "../../run/case_graph.ts";
import { plan } from "../planner.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import { createWasmBackend } from "../../run/wasm/backend.ts";
import { deadCode } from "./dead_code.ts";
import { joinAttentionProducts } from "./join_attention_products.ts";
import { joinRows } from "./joined_weights.ts";
import type { PassContext } from "./pass.ts";

const CONTEXT: PassContext = {
  precision: "fast",
  takes: () => true,
  hasKernel: () => true,
};
const B = symbol("B", { min: 1 }), T = symbol("T", { min: 1 });
const LIMITS = { B: 2, T: 37 };
const COLUMNS = 64, WIDTH = 16;

interface Projections {
  /** What is multiplied; rounded ones are 8-bit rows by weights in 7 bit. */
  readonly rows: "f32" | "q8" | "rounded";
  /** Number format of queries, keys and values. */
  readonly formats: readonly [string, string, string];
  readonly kvHeads?: number;
  readonly bias?: boolean;
  /** The products have two dims, as exporters that flatten rows write them. */
  readonly flat?: boolean;
  /** Keys are of another input. */
  readonly cross?: boolean;
  /** Something else reads the values. */
  readonly readTwice?: boolean;
}

/** Four query heads of 16 channels over rows of 64. */
function build(given: Projections): Graph {
  const { rows: kind, formats, kvHeads = 4, bias = false, flat = false, cross, readTwice } = given;
  const builder = createGraphBuilder("projections", getOp), random = createCaseRandom(3);
  const one = (name: string, op: string, inputs: readonly (Value | undefined)[], attributes = {}) =>
    builder.op(op, inputs, attributes, name)[0]!;
  const source = (name: string) => {
    const x = builder.input(name, [B, T, COLUMNS], "f32");
    const format = kind === "rounded" ? "q8_low" : "q8";
    return kind === "f32" ? x : one(`${name}.q8`, "quantize", [x], { format });
  };
  const x = source("x"), other = cross ? source("other") : x;
  const [q, k, v] = (["q", "k", "v"] as const).map((name, i) => {
    const rows = WIDTH * (i === 0 ? 4 : kvHeads), format = getFormat(formats[i]!);
    const bytes = new Uint8Array(rows * COLUMNS / format.blockSize * format.blockBytes);
    format.encode!(random.normal(rows * COLUMNS), bytes);
    const tensor = tensorInMemory(name, { format: format.name, shape: [rows, COLUMNS], bytes });
    const added = bias ? [builder.constant(`${name}.bias`, random.normal(rows))] : [];
    const from = i === 1 ? other : x;
    const inputs = [from, builder.weight(`${name}.w`, tensor), ...added];
    const product = one(name, "matmul", inputs, { rounded: kind === "rounded" });
    if (!flat) return product;
    const split = one(`${name}.split`, "reshape", [product], { shape: [B, T, rows / 16, 16] });
    return one(`${name}.rows`, "reshape", [split], { shape: [B, T, rows] });
  }) as [Value, Value, Value];
  const attributes = { q_heads: 4, kv_heads: kvHeads, scale: 0.25 };
  builder.output("y", one("attention", "attention", [q, k, v], attributes));
  if (readTwice) builder.output("v", one("scaled", "unary", [v], { kind: "scale", alpha: 2 }));
  return builder.build();
}

async function outputOf(backend: Backend, graph: Graph): Promise<Float32Array> {
  const executable = await backend.prepare(plan(graph, { limits: LIMITS }), { slots: 1 });
  const data = executable.input("x") as Float32Array;
  data.set(createCaseRandom(5).normal(data.length));
  await executable.run(LIMITS);
  const result = (executable.output("y") as Float32Array).slice();
  executable.dispose();
  return result;
}

const JOINED: Readonly<Record<string, Projections>> = {
  "8-bit rows and codes": { rows: "q8", formats: ["Q4_0", "Q4_0", "Q4_0"] },
  "floats in 7 bit, biases": { rows: "rounded", formats: ["F32", "F32", "F32"], bias: true },
  "fewer heads of keys, views": {
    ...{ rows: "q8", formats: ["Q8_0", "Q8_0", "Q8_0"], kvHeads: 2, bias: true, flat: true },
  },
};

for (const [name, projections] of Object.entries(JOINED)) {
  Deno.test(`attention reads one product for three (${name}), bit by bit the same`, async () => {
    const before = build(projections);
    const after = deadCode.run(joinAttentionProducts.run(before, CONTEXT), CONTEXT);
    verify(after, getOp);
    const products = after.nodes.filter(({ op }) => op === "matmul");
    const rows = WIDTH * (4 + 2 * (projections.kvHeads ?? 4));
    assertEquals(products.map(({ outputs }) => outputs[0]!.shape.at(-1)), [rows]);
    for (const backend of [createReferenceBackend(), createWasmBackend({ threads: 2 })]) {
      const wanted = await outputOf(backend, before);
      assert(wanted.some((value) => value !== 0));
      assertEquals(await outputOf(backend, after), wanted);
    }
  });
}

const APART: Readonly<Record<string, Projections>> = {
  "products of floats, which lose by it": { rows: "f32", formats: ["F32", "F32", "F32"] },
  "weights of several formats": { rows: "q8", formats: ["Q4_0", "Q4_0", "Q8_0"] },
  "keys of another input": { rows: "q8", formats: ["Q4_0", "Q4_0", "Q4_0"], cross: true },
  "values that are read twice": {
    ...{ rows: "q8", formats: ["Q4_0", "Q4_0", "Q4_0"], readTwice: true },
  },
};

for (const [name, projections] of Object.entries(APART)) {
  Deno.test(`what cannot be one product stays as it is: ${name}`, () => {
    const graph = build(projections);
    assertStrictEquals(joinAttentionProducts.run(graph, CONTEXT), graph);
  });
}

Deno.test("joined tensors are read as each of them reads best", async () => {
  const asked: unknown[] = [];
  const tensors = ["a", "b"].map((name, i) => ({
    ...tensorInMemory(name, { format: "I8", shape: [2, 4], bytes: new Uint8Array(8) }),
    offset: 100 * i,
    source: {
      ...{ name, size: 200, close() {} },
      readInto: (at: number, { length }: Uint8Array) => void asked.push(["at once", at, length]),
      readBeside(at: number, { length }: Uint8Array) {
        if (length < 4) return undefined;
        asked.push(["beside", at, length]);
        return Promise.resolve();
      },
    },
  }));
  const { source } = joinRows(tensors);
  await source.readInto(3, new Uint8Array(7));
  await source.readInto(8, new Uint8Array(8));
  assertEquals(asked, [["beside", 3, 5], ["at once", 100, 2], ["beside", 100, 8]]);
});
