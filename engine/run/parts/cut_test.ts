import { assertEquals, assertThrows } from "@std/assert";
import { TOY, TOY_LIMITS, toyDecoder } from "../../../tests/support/toy_decoder.ts";
import { UnsupportedError } from "../../errors.ts";
import type { Node } from "../../graph/graph.ts";
import { plan } from "../../plan/planner.ts";
import type { Backend, Lane, PreparedPlan } from "../backend.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";
import { createWasmBackend } from "../wasm/backend.ts";
import { besideHost } from "./beside.ts";
import { cutPlan } from "./cut.ts";
import { prepareParts } from "./run_parts.ts";

const MADE = plan(toyDecoder(), { limits: TOY_LIMITS });
const OPTIONS = { slots: 2 };
const TOKENS = [3, 1, 4, 1, 5, 9];

/** The second layer and what follows. */
const isLate = ({ name }: Node) => !/^(embed|layers\.0)/.test(name);

async function logitsOf(
  executable: Lane,
  { slot, tokens, first }: {
    readonly slot: number;
    readonly tokens: readonly number[];
    readonly first: number;
  },
): Promise<number[]> {
  executable.input("tokens").set(tokens as never);
  executable.input("positions").set(tokens.map((_, i) => first + i) as never);
  executable.input("slots").set(tokens.map(() => slot) as never);
  executable.input("logit_rows").set([tokens.length - 1] as never);
  await executable.run({ M: tokens.length, L: 1 });
  return [...executable.output("logits").subarray(0, TOY.vocabulary)] as number[];
}

/** A prompt, and what follows when its state was moved to another slot, in bytes that do not depend on the cut. */
async function answer(executable: PreparedPlan): Promise<[number[], Uint8Array, number[]]> {
  const slots = [executable.openSlot(), executable.openSlot()] as const;
  const prompt = await logitsOf(executable, { slot: slots[0], tokens: TOKENS, first: 0 });
  const saved = await executable.readState(slots[0], TOKENS.length);
  await executable.writeState(slots[1], TOKENS.length, saved);
  const next = await logitsOf(executable, { slot: slots[1], tokens: [7], first: TOKENS.length });
  executable.dispose();
  return [prompt, saved, next];
}

Deno.test("layers with states on any places give what one place gives, and save the same bytes", async () => {
  const reference = createReferenceBackend(), wasm = createWasmBackend({ threads: 1 });
  const expected = await answer(await reference.prepare(MADE, OPTIONS));
  const partition = new Map(MADE.graph.nodes.map((node) => [node, isLate(node) ? 1 : 0]));
  const parts = cutPlan(MADE, { places: [0, 1], partition });
  assertEquals(parts.map(({ plan: { graph } }) => graph.states.length), [2, 2]);
  for (const places of [[reference, reference], [wasm, reference], [reference, wasm]] as const) {
    const executable = await prepareParts<number, PreparedPlan>(MADE, {
      parts,
      options: OPTIONS,
      prepare: ({ place, plan }, options) => places[place]!.prepare(plan, options),
    });
    const actual = await answer(executable);
    const isExact = places.every((backend) => backend === reference);
    for (const [i, values] of [expected[0], expected[2]].entries()) {
      const worst = Math.max(...values.map((value, at) => Math.abs(value - actual[2 * i]![at]!)));
      assertEquals(worst <= (isExact ? 0 : 1e-4), true, `off by ${worst}`);
    }
    assertEquals(actual[1].length, expected[1].length);
    if (isExact) assertEquals(actual, expected);
  }
});

/** Lanes of a part that begin only when all of them have been asked for a run. */
function togetherLanes(prepared: PreparedPlan, count: number): PreparedPlan {
  const { promise: allAreAsked, resolve } = Promise.withResolvers<void>();
  const { inputs, outputs } = prepared.plan.graph;
  let asked = 0;
  const lanes = Array.from({ length: count }, (): Lane => {
    const own = new Map(
      [
        ...inputs.map(({ name }) => [name, prepared.input(name)] as const),
        ...outputs.map(({ name }) => [name, prepared.output(name)] as const),
      ].map(([name, data]) => [name, data.slice()]),
    );
    const of = (name: string) => own.get(name)!;
    return {
      ...{ input: of, output: of },
      async run(bindings) {
        if (++asked === count) resolve();
        await allAreAsked;
        for (const { name } of inputs) prepared.input(name).set(of(name) as never);
        prepared.run(bindings);
        for (const { name } of outputs) of(name).set(prepared.output(name) as never);
      },
    };
  });
  return { ...prepared, lanes, run: () => Promise.reject(new TypeError("not a lane")) };
}

Deno.test("a part with lanes is asked for the next run before it has answered", async () => {
  const reference = createReferenceBackend();
  const partition = new Map(MADE.graph.nodes.map((node) => [node, isLate(node) ? 1 : 0]));
  const executable = await prepareParts<number, PreparedPlan>(MADE, {
    ...{ parts: cutPlan(MADE, { places: [0, 1], partition }), options: OPTIONS, lanes: 2 },
    async prepare({ place, plan }, options) {
      const prepared = await reference.prepare(plan, options);
      return place === 1 ? togetherLanes(prepared, 2) : prepared;
    },
  });
  const whole = await reference.prepare(MADE, OPTIONS);
  const texts = [TOKENS, [2, 7, 1]];
  const answers = await Promise.all(texts.map((tokens, lane) => {
    const slot = executable.openSlot();
    return logitsOf(executable.lanes![lane]!, { slot, tokens, first: 0 });
  }));
  for (const [i, tokens] of texts.entries()) {
    assertEquals(answers[i], await logitsOf(whole, { slot: whole.openSlot(), tokens, first: 0 }));
  }
  executable.dispose();
  whole.dispose();
});

Deno.test("nodes that use states are on one side of a device that lacks a kernel for one of them", async () => {
  const reference = createReferenceBackend();
  const device: Backend = {
    ...reference,
    takes: () => Promise.resolve(({ name, op }) => op !== "attention" || isLate({ name } as Node)),
  };
  const backend = besideHost(device, () => Promise.resolve(reference));
  const executable = await backend.prepare(MADE, { ...OPTIONS, hostSteps: true });
  const onHost = new Set(executable.hostNodes!.map(({ op }) => op));
  // What only attention reads is made beside it.
  assertEquals(onHost, new Set(["attention", "kv_append", "rope_table"]));
  assertEquals(await answer(executable), await answer(await reference.prepare(MADE, OPTIONS)));
});

Deno.test("what uses a state waits for the rest of it, which comes from elsewhere", async () => {
  const reference = createReferenceBackend();
  // Keys could be stored before the queries are there.
  const isQuery = ({ name }: Node) => /^layers\.\d+\.q$/.test(name);
  const { nodes } = MADE.graph;
  assertEquals(nodes.filter(isQuery).length, 2);
  const partition = new Map(nodes.map((node) => [node, isQuery(node) ? 1 : 0]));
  const parts = cutPlan(MADE, { places: [0, 1], partition });
  assertEquals(parts.map(({ plan: { graph } }) => graph.states.length), [0, 0, 2, 0, 2]);
  const executable = await prepareParts<number, PreparedPlan>(MADE, {
    ...{ parts, options: OPTIONS },
    prepare: ({ plan }, options) => reference.prepare(plan, options),
  });
  assertEquals(await answer(executable), await answer(await reference.prepare(MADE, OPTIONS)));
});

Deno.test("a state is of one part, and every node has a place", () => {
  const { nodes } = MADE.graph;
  const partition = new Map(nodes.map((node) => [node, node.op === "attention" ? 1 : 0]));
  const error = assertThrows(
    () => cutPlan(MADE, { places: [0, 1], partition }),
    UnsupportedError,
    "would be used in two parts of the graph",
  );
  assertEquals(error.message.includes("layers.0"), true, error.message);
  partition.delete(nodes[0]!);
  assertThrows(() => cutPlan(MADE, { places: [0, 1], partition }), TypeError, "has no place");
});
