// No pass changes a number: every pattern of every pass, and the same with one thing unusual, gives with the pass on
// what it gives with the pass off. Graphs run on the reference; as they are, on WASM too.

import { assert, assertEquals } from "@std/assert";
import { createCaseRandom } from "../engine/ops/case_random.ts";
import type { DimEnv } from "../engine/graph/dim/mod.ts";
import type { Graph, Node } from "../engine/graph/graph.ts";
import { getElement, type HostTensor, setElement } from "../engine/ops/host_tensor.ts";
import { getOp } from "../engine/ops/mod.ts";
import { answersOf } from "../engine/run/kernel_choice.ts";
import { LEAST_WASM, WASM_KERNELS } from "../engine/run/wasm/kernel_table.ts";
import { verify } from "../engine/graph/verify.ts";
import type { Backend } from "../engine/run/backend.ts";
import { deadCode } from "../engine/plan/passes/dead_code.ts";
import type { NodeDraft, Pass, PassContext } from "../engine/plan/passes/pass.ts";
import { plan } from "../engine/plan/planner.ts";
import { createReferenceBackend } from "../engine/run/reference/reference_backend.ts";
import { createWasmBackend } from "../engine/run/wasm/backend.ts";
import { derive, type OnnxLine, type Pattern } from "./support/pass_pattern.ts";
import { PATTERNS } from "./support/pass_patterns.ts";
import { unusualGraphs } from "./support/unusual_graphs.ts";

const FOLDER = new URL("../engine/plan/passes/", import.meta.url);
/** The size of dims that are none. */
const ROWS = 3;

/** Every pass of the folder, by name. */
const PASSES = new Map<string, Pass>();
for (const { name } of Deno.readDirSync(FOLDER)) {
  if (name.endsWith("_test.ts")) continue;
  const module = await import(new URL(name, FOLDER).href);
  for (const value of Object.values(module) as Partial<Pass>[]) {
    if (value?.reads && typeof value.run === "function") PASSES.set(value.name!, value as Pass);
  }
}

/** What no kernel of a device may take for a pass to be of use. */
const LACKING: Readonly<Record<string, string>> = { write_out_attention: "attention" };

const ON_WASM = answersOf(WASM_KERNELS, LEAST_WASM);

/** A device that has everything else, and is asked for what the pass is for. */
function contextOf({ name }: Pass, device?: "wasm"): PassContext {
  const precisions: Record<string, PassContext["precision"]> = {
    quantize_activations: "fast",
    strict_products: "strict",
  };
  return {
    precision: precisions[name] ?? "exact",
    roundsWeights: true,
    takes: (draft) =>
      draft.op !== LACKING[name] &&
      (device ? ON_WASM.takes(draft) : multipliesAsMeant(draft)),
    hasKernel: (op) => !device || ON_WASM.hasKernel(op),
    picksRowsEarly: true,
  };
}

/** Whether rows of 8 bit meet codes, or weights that are rounded. */
function multipliesAsMeant({ inputs: [x, weight], attributes }: NodeDraft): boolean {
  if (x?.dtype !== "q8") return true;
  return weight?.tensor?.format === (attributes.rounded ? "F32" : "Q8_0");
}

function apply(pass: Pass, graph: Graph, device?: "wasm"): Graph {
  const context = contextOf(pass, device);
  const result = deadCode.run(pass.run(graph, context), context);
  verify(result, getOp);
  return result;
}

/** Results by name, with their sizes. */
type Results = ReadonlyMap<string, { readonly shape: string; readonly numbers: Float64Array }>;

async function run(graph: Graph, backend: Backend): Promise<Results> {
  const isSized = graph.inputs.every(({ shape }) =>
    shape.every((size) => typeof size === "number")
  );
  const bindings: DimEnv = isSized ? {} : { M: ROWS };
  const executable = await backend.prepare(plan(graph, { limits: bindings }), {
    slots: 1,
    hostSteps: true,
  });
  try {
    const slot = graph.states.length > 0 ? executable.openSlot() : 0;
    for (const [seed, { name, dtype, shape }] of graph.inputs.entries()) {
      const sizes = shape.map((size) => typeof size === "number" ? size : ROWS);
      const tensor: HostTensor = { dtype, shape: sizes, data: executable.input(name) };
      const numbers = createCaseRandom(seed + 9).normal(tensor.data.length, 2);
      const whole: Record<string, (at: number) => number> = {
        positions: (at) => at,
        slots: () => slot,
        rows: (at) => 2 - at,
        counts: () => 5,
      };
      numbers.forEach((number, at) =>
        setElement(tensor, { index: at, value: whole[name]?.(at) ?? number })
      );
    }
    await executable.run(bindings);
    return new Map(graph.outputs.map(({ name, dtype, shape }) => {
      const tensor: HostTensor = { dtype, shape: [], data: executable.output(name) };
      const numbers = Float64Array.from(
        { length: tensor.data.length },
        (_, at) => getElement(tensor, at),
      );
      return [name, { shape: shape.join(), numbers }];
    }));
  } finally {
    executable.dispose();
  }
}

/** Where results differ, as a sentence. */
function difference(wanted: Results, got: Results, tolerance: number): string | undefined {
  for (const [name, { shape, numbers }] of wanted) {
    const other = got.get(name)!;
    if (other.shape !== shape) return `${name} is of shape [${other.shape}], not [${shape}]`;
    const largest = numbers.filter(Number.isFinite).reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    const at = numbers.findIndex((number, i) =>
      !isNear(number, other.numbers[i]!, tolerance * largest)
    );
    if (at >= 0) return `${name}[${at}] is ${other.numbers[at]}, not ${numbers[at]}`;
  }
  return undefined;
}

function isNear(a: number, b: number, bound: number): boolean {
  return Object.is(a, b) || Math.abs(a - b) <= bound;
}

/** The pattern's nodes with one attribute of the file at another value. */
function* unusualFiles({ file }: Pattern): Generator<{ what: string; graph: Graph }> {
  for (const [at, [results, op, inputs, attributes = {}]] of (file?.nodes ?? []).entries()) {
    const named = FILE_ATTRIBUTES[op] ?? {};
    for (const [name, values] of Object.entries(named)) {
      for (const value of values) {
        const line: OnnxLine = [results, op, inputs, { ...attributes, [name]: value }];
        yield {
          what: `${op} with ${name} ${JSON.stringify(value)}`,
          graph: derive({ ...file!, nodes: file!.nodes.with(at, line) }),
        };
      }
    }
  }
}

/** Attributes of files that end up in another op, or another form of it. */
const FILE_ATTRIBUTES: Readonly<Record<string, Readonly<Record<string, readonly Attribute[]>>>> = {
  Swish: { alpha: [{ f: 0.5 }, { f: -1 }, { f: 0 }] },
  "com.microsoft.QuickGelu": { alpha: [{ f: 1.702 }, { f: 0 }] },
  BatchNormalization: { epsilon: [{ f: 0 }, { f: 2 }] },
  LeakyRelu: { alpha: [{ f: 0 }, { f: -0 }, { f: 2 }] },
  ReduceMean: { keepdims: [{ i: 1 }], noop_with_empty_axes: [{ i: 1 }] },
  Conv: { auto_pad: [{ s: "SAME_UPPER" }, { s: "SAME_LOWER" }, { s: "VALID" }] },
  Attention: {
    scale: [{ f: 0.3 }],
    softcap: [{ f: 2 }],
    is_causal: [{ i: 1 }],
    softmax_precision: [{ i: 1 }],
  },
};
type Attribute = NonNullable<OnnxLine[3]>[string];

Deno.test("every pass has patterns, and in them every op that it reads", () => {
  assertEquals([...PASSES.keys()].sort(), Object.keys(PATTERNS).sort());
  for (const [name, { reads }] of PASSES) {
    if (reads === "everything") continue;
    const ops = new Set(PATTERNS[name]!.flatMap((one) => one.graph().nodes.map(({ op }) => op)));
    assertEquals(Object.keys(reads).filter((op) => !ops.has(op)), [], `${name} reads`);
  }
});

Deno.test("what a pass reads exists, and what has no default it reads", () => {
  for (const [name, { reads }] of PASSES) {
    if (reads === "everything") continue;
    for (const [op, known] of Object.entries(reads)) {
      const { rules } = getOp(op);
      if (known === "whole") continue;
      const unknown = known.filter((attribute) => !Object.hasOwn(rules, attribute));
      assertEquals(unknown, [], `${name} reads of ${op}`);
      const left = Object.keys(rules).filter((attribute) =>
        rules[attribute]!.fallback === undefined && !known.includes(attribute)
      );
      assertEquals(left, [], `${name} never sees ${op}, because it does not read`);
    }
  }
});

/** What may be refused: a cache takes no NaN, and precision "strict" no other weights. */
const REFUSED = /Cannot store NaN as float16|Cannot use precision "strict"/;

/** Whether a pass makes such a node for the GPU alone. */
function isForGpu({ op, attributes }: Node): boolean {
  return op === "attention" && attributes.to === "q8" ||
    op === "matmul" && attributes.gate !== "none";
}

const reference = createReferenceBackend();
const wasm = createWasmBackend({ threads: 1, shared: true });

for (const [name, patterns] of Object.entries(PATTERNS)) {
  const pass = PASSES.get(name)!;
  Deno.test(`${name} changes no number, whatever is unusual`, async () => {
    const problems: string[] = [];
    const compare = async (graph: Graph, what: string, { tolerance = 1e-4 }: Pattern) => {
      try {
        const wanted = await run(graph, reference);
        const found = difference(wanted, await run(apply(pass, graph), reference), tolerance);
        if (found) problems.push(`${what}: ${found}`);
      } catch (error) {
        if (!REFUSED.test(`${error}`)) problems.push(`${what}: ${error}`);
      }
    };
    for (const pattern of patterns) {
      const graph = pattern.graph(), changed = apply(pass, graph);
      assert(textOf(changed) !== textOf(graph), `${pattern.name} is not recognised`);
      await compare(graph, pattern.name, pattern);
      for (const unusual of [...unusualGraphs(graph), ...unusualFiles(pattern)]) {
        await compare(unusual.graph, `${pattern.name}, ${unusual.what}`, pattern);
      }
    }
    assertEquals(problems, []);
  });

  Deno.test(`${name} changes no number on WASM`, async () => {
    for (const pattern of patterns) {
      const { tolerance = 1e-4 } = pattern, graph = pattern.graph();
      if (graph.nodes.some(isForGpu)) continue;
      const got = await run(apply(pass, graph, "wasm"), wasm);
      assertEquals(
        difference(await run(graph, reference), got, tolerance),
        undefined,
        pattern.name,
      );
    }
  });
}

/** Ops, attributes and who reads whom. */
function textOf({ nodes, outputs }: Graph): string {
  const names = new Map(nodes.flatMap((node, at) => node.outputs.map((value) => [value, at])));
  const lines = nodes.map(({ op, inputs, attributes }) => [
    op,
    attributes,
    inputs.map((value) => value && (names.get(value) ?? value.name)),
  ]);
  return JSON.stringify([lines, outputs.map((value) => names.get(value))]);
}
