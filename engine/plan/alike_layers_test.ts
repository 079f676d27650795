import { assert, assertEquals } from "@std/assert";
import { toyDecoder } from "../../tests/support/toy_decoder.ts";
import { formatDim } from "../graph/dim/mod.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { verify } from "../graph/verify.ts";
import { getOp } from "../ops/mod.ts";
import { GPU_KERNELS, LEAST_GPU } from "../run/gpu/kernel_table.ts";
import { answersOf } from "../run/kernel_choice.ts";
import { LEAST_WASM, WASM_KERNELS } from "../run/wasm/kernel_table.ts";
import { optimizeAlike } from "./alike_layers.ts";
import { optimize } from "./passes.ts";
import type { PassContext } from "./passes/pass.ts";

const WASM = { ...answersOf(WASM_KERNELS, LEAST_WASM), picksRowsEarly: true };
const GPU = answersOf(GPU_KERNELS, LEAST_GPU);
const LAYERS = 12;

/** All that a graph says, values by what made them. */
function written({ nodes, inputs, states, outputs }: Graph): unknown {
  const names = new Map<Value, string>();
  const nameOf = (value: Value | undefined) => value && (names.get(value) ?? textOf(value));
  const textOf = ({ name, role, dtype, shape, tensor }: Value) =>
    [name, role, dtype, shape.map(formatDim).join("×"), tensor?.name, tensor?.offset].join(" ");
  const lines = nodes.map(({ op, name, inputs, outputs, attributes }) => {
    outputs.forEach((value, i) => names.set(value, `${name}.${i} ${textOf(value)}`));
    return { op, name, attributes, inputs: inputs.map(nameOf), outputs: outputs.map(textOf) };
  });
  return {
    lines,
    inputs: inputs.map(textOf),
    states: states.map(textOf),
    outputs: outputs.map(nameOf),
  };
}

/** How many nodes the passes saw, behind the check that they made of the graph what they make of the whole. */
function seenOf(graph: Graph, context: PassContext): number {
  let seen = 0;
  const short = optimizeAlike(graph, (some) => {
    seen += some.nodes.length;
    return optimize(some, { context });
  });
  verify(short, getOp);
  assertEquals(written(short), written(optimize(graph, { context })));
  return seen;
}

Deno.test("a graph whose alike layers went through the passes once is that of the passes over all", () => {
  for (const answers of [WASM, GPU]) {
    for (const precision of ["exact", "fast"] as const) {
      for (const format of ["F32", "Q4_0"]) {
        const graph = toyDecoder("f16", format, { layers: LAYERS });
        const seen = seenOf(graph, { ...answers, precision });
        assert(seen < graph.nodes.length / 2, `${seen} of ${graph.nodes.length}`);
      }
    }
  }
});

Deno.test("only a run of layers of the same formats and windows is left out", () => {
  const context: PassContext = { ...WASM, precision: "fast" };
  const formatAt = (odd: number) => (name: string) =>
    name.startsWith(`layers.${odd}.`) ? "Q8_0" : "Q4_0";
  for (const odd of [0, 4, LAYERS - 1]) {
    const graph = toyDecoder("f16", formatAt(odd), { layers: LAYERS });
    const seen = seenOf(graph, context);
    assert(seen < graph.nodes.length * 0.8, `layer ${odd}: ${seen} of ${graph.nodes.length}`);
  }
  const turns = toyDecoder("f16", "Q4_0", {
    layers: LAYERS,
    windows: Array.from({ length: LAYERS }, (_, layer) => layer % 2 ? 8 : 0),
  });
  assertEquals(seenOf(turns, context), turns.nodes.length);
  const few = toyDecoder("f16", "Q4_0", { layers: 6 });
  assertEquals(seenOf(few, context), few.nodes.length);
});

Deno.test("passes that tell alike layers apart see the whole graph", () => {
  const graph = toyDecoder("f16", "Q4_0", { layers: LAYERS });
  const context: PassContext = { ...WASM, precision: "fast" };
  const seen: number[] = [];
  const takes: PassContext["takes"] = (draft) =>
    !draft.inputs.some((value) => value?.name.startsWith("layers.2.")) && WASM.takes(draft);
  const made = optimizeAlike(graph, (some) => {
    seen.push(some.nodes.length);
    return optimize(some, { context: { ...context, takes } });
  });
  assertEquals(seen.at(-1), graph.nodes.length);
  assertEquals(written(made), written(optimize(graph, { context: { ...context, takes } })));
});
