import { assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { getOp } from "../../ops/mod.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import { plan } from "../planner.ts";
import { deadCode } from "./dead_code.ts";
import { fuseActivation } from "./fuse_activation.ts";
import type { PassContext } from "./pass.ts";
import { recognizeGroupNorm } from "./recognize_group_norm.ts";

const CONTEXT: PassContext = { precision: "exact", takes: () => true, hasKernel: () => true };
const SHAPE = [2, 6, 3, 5], PLACES = 15;

interface Form {
  readonly groups?: number;
  readonly gain?: number;
  readonly weight?: readonly number[];
  readonly swapped?: boolean;
  readonly isShown?: boolean;
  readonly back?: readonly number[];
}

/** silu(reshape(instance norm of a view) · w + b). */
function graphOf(
  { groups = 3, gain = 1, weight = [6, 1, 1], swapped, isShown, back = SHAPE }: Form,
): Graph {
  const builder = createGraphBuilder("norm", getOp), random = createCaseRandom(3);
  const numbers = (name: string, shape: readonly number[], fill?: number) => {
    const count = shape.reduce((a, b) => a * b, 1);
    const data = fill === undefined ? random.normal(count) : new Float32Array(count).fill(fill);
    return builder.constant(name, data, shape);
  };
  const x = builder.input("x", SHAPE, "f32");
  const shape = [2, groups, 6 / groups * PLACES];
  const view = builder.op("reshape", [x], { shape }, "view")[0]!;
  const vectors = [numbers("ones", [groups], gain), numbers("zeros", [groups], 0)];
  const norm = builder.op(
    "group_norm",
    [view, ...vectors],
    { groups: 0, epsilon: 0.1 },
    "norm",
  )[0]!;
  const again = builder.op("reshape", [norm], { shape: back }, "again")[0]!;
  const w = numbers("w", weight), b = numbers("b", [1, 6, 1, 1]);
  const scaled = builder.op(
    "binary",
    swapped ? [w, again] : [again, w],
    { kind: "mul" },
    "scaled",
  )[0]!;
  const moved = builder.op(
    "binary",
    swapped ? [b, scaled] : [scaled, b],
    { kind: "add" },
    "moved",
  )[0]!;
  builder.output("y", builder.op("unary", [moved], { kind: "silu" }, "silu")[0]!);
  if (isShown) builder.output("norm", norm);
  return builder.build();
}

const passed = (graph: Graph) =>
  [recognizeGroupNorm, fuseActivation, deadCode].reduce(
    (own, pass) => pass.run(own, CONTEXT),
    graph,
  );

async function run(graph: Graph): Promise<number[]> {
  const executable = await createReferenceBackend().prepare(plan(graph, { limits: {} }), {
    slots: 0,
  });
  const input = executable.input("x") as Float32Array;
  input.set(createCaseRandom(9).normal(input.length));
  await executable.run({});
  return [...executable.output("y")].map(Number);
}

for (
  const [name, form] of Object.entries({
    "as exporters write it": {},
    "with the operands the other way round": { swapped: true },
    "of one group": { groups: 1 },
    "scaled by one number for each channel and item dim": { weight: [1, 6, 1, 1] },
  })
) {
  Deno.test(`a norm of groups ${name} is one op with the function behind it`, async () => {
    const before = graphOf(form), after = passed(before);
    const [{ attributes }] = after.nodes.filter(({ op }) => op === "group_norm") as [
      Graph["nodes"][0],
    ];
    assertEquals(after.nodes.map(({ op }) => op), ["reshape", "reshape", "group_norm"]);
    assertEquals([attributes.groups, attributes.activation], [form.groups ?? 3, "silu"]);
    const [actual, expected] = [await run(after), await run(before)];
    const most = Math.max(...expected.map(Math.abs));
    assertEquals(actual.filter((value, i) => Math.abs(value - expected[i]!) > 1e-6 * most), []);
  });
}

for (
  const [name, form] of Object.entries({
    "that scales its groups": { gain: 2 },
    "whose result is read elsewhere": { isShown: true },
    "scaled by places": { weight: [1, 3, 5] },
    "viewed as something else": { back: [2, 6, 5, 3] },
  })
) {
  Deno.test(`a norm of groups ${name} stays`, () => {
    const ops = passed(graphOf(form)).nodes.map(({ op }) => op);
    assertEquals(ops.filter((op) => op === "reshape").length, 2);
    assertEquals(ops.includes("group_norm"), true);
    assertEquals(ops.includes("unary") || ops.includes("binary"), true);
  });
}
