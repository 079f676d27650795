import { assert, assertEquals } from "@std/assert";
import { createCaseRandom } from "../../ops/case_random.ts";
import type { Graph } from "../../graph/graph.ts";
import type { OpCase } from "../../ops/op_case.ts";
import { getOp } from "../../ops/mod.ts";
import { tensorCases } from "../../ops/attention_tensor_cases.ts";
import { verify } from "../../graph/verify.ts";
import { caseGraph } from "../../run/case_graph.ts";
import { plan } from "../planner.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import type { PassContext } from "./pass.ts";
import { writeOutAttention } from "./write_out_attention.ts";

const CONTEXT: PassContext = {
  precision: "exact",
  takes: ({ op }) => op !== "attention",
  hasKernel: () => true,
};

const random = createCaseRandom(3);
const base = { q_heads: 4, kv_heads: 2, scale: 0.3 };
const q = random.input([2, 4, 5, 8]),
  k = random.input([2, 2, 7, 8]),
  v = random.input([2, 2, 7, 6]);
const OWN: readonly OpCase[] = [
  ...["products", "capped", "masked", "weights"].map((scores) => ({
    name: `cap, mask of truth values, ${scores}`,
    inputs: [q, k, v, random.truths([2, 1, 5, 7])],
    attributes: { ...base, softcap: 3, scores },
  })),
  {
    name: "rows that see nothing",
    inputs: [
      q,
      k,
      v,
      { ...random.typed("bool", Array(35).fill(0).fill(1, 14)), shape: [5, 7] } as never,
    ],
    attributes: base,
  },
  {
    name: "causal in front of all keys",
    inputs: [q, k, v],
    attributes: { ...base, causal: true, offset: -2 },
  },
];

async function outputsOf(graph: Graph, { inputs }: OpCase): Promise<readonly number[]> {
  const executable = await createReferenceBackend().prepare(plan(graph, { limits: {} }), {
    slots: 1,
  });
  inputs.forEach((input, i) => {
    if (input?.role === "input") {
      (executable.input(`input${i}`) as Uint8Array).set(input.data as Uint8Array);
    }
  });
  await executable.run({});
  const results = graph.outputs.flatMap(({ name }) => Array.from(executable.output(name), Number));
  executable.dispose();
  return results;
}

Deno.test("attention that is written out gives what it gave", async () => {
  const written = new Set<string>();
  for (const opCase of [...tensorCases(random), ...OWN]) {
    const before = caseGraph("attention", opCase);
    const after = writeOutAttention.run(before, CONTEXT);
    if (after === before) continue;
    verify(after, getOp);
    written.add(opCase.name);
    assert(after.nodes.every(({ op }) => op !== "attention"));
    const wanted = await outputsOf(before, opCase), given = await outputsOf(after, opCase);
    assertEquals(given.length, wanted.length);
    given.forEach((value, i) =>
      assert(
        Object.is(value, wanted[i]) || Math.abs(value - wanted[i]!) < 1e-5,
        `${opCase.name}: ${value} at ${i}, ${wanted[i]} wanted`,
      )
    );
  }
  for (
    const name of [
      "rows of heads, mask",
      "grouped, causal, planes of keys",
      ...OWN.map(({ name }) => name),
    ]
  ) {
    assert(written.has(name), `${name} is not written out`);
  }
});

Deno.test("attention stays whole where it has a kernel, or counts keys, or looks through a window", () => {
  for (const opCase of tensorCases(random)) {
    const graph = caseGraph("attention", opCase);
    assertEquals(writeOutAttention.run(graph, { ...CONTEXT, takes: () => true }), graph);
    if (/window|valid|one tensor|behind/.test(opCase.name)) {
      assertEquals(writeOutAttention.run(graph, CONTEXT), graph, opCase.name);
    }
  }
});
