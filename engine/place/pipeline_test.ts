// Queries under way at once over several devices, by a fake clock: how much more they get than one alone is the number of
// groups (Inferflow's table 5; the figures stand in the fixture, with the formulas they come from).

import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { readFixture } from "../../tests/support/fixtures.ts";
import { createFakeClock, type FakeClock, simulate } from "../../tests/support/simulated_device.ts";
import { TOY, TOY_LIMITS, toyDecoder } from "../../tests/support/toy_decoder.ts";
import type { DimEnv } from "../graph/dim/mod.ts";
import type { Plan } from "../plan/plan.ts";
import { plan } from "../plan/planner.ts";
import { openDevice } from "../run/devices.ts";
import { type Executable, prepareExecutable } from "../run/executable.ts";
import { addRows, clearStep, createStep } from "../run/step.ts";
import { createPlacedDevice } from "./placed_device.ts";
import { countLayers, groupRules } from "./rules.ts";

interface Row {
  readonly strategy: string;
  readonly groups: number;
  readonly stage_s: number;
  readonly decode_tok_s: number;
  readonly throughput_over_decode_simulated_200_tokens: number;
}

const { table5 } = JSON.parse(readFixture("decoding/placement.json")) as { table5: readonly Row[] };
const LAYERS = 4, TOKENS = 200;
const PLACEMENTS: Readonly<Record<string, string>> = {
  by_layer: "0;1;2;3",
  by_tensor: "0&1&2&3",
  hybrid: "0&1;2&3",
};
const PROMPT = 512;

/** The toy, for steps of at most so many rows. */
function toyPlan(rows: number): Plan {
  const sizes = { layers: LAYERS, kvHeads: 4, capacity: Math.max(TOKENS, rows), rows };
  return plan(toyDecoder("f16", "F32", sizes), { limits: { ...TOY_LIMITS, M: rows } });
}

/** The toy over simulated devices: what a placement says, so many steps under way. */
async function prepare(
  text: string,
  { rows, slots, secondsOf }: {
    readonly rows: number;
    readonly slots: number;
    /** How long a run takes for each half of a layer that a device has. */
    readonly secondsOf: (bindings: DimEnv) => number;
  },
): Promise<{ readonly executable: Executable; readonly clock: FakeClock }> {
  const clock = createFakeClock(), devices = text.split(/[;&]/);
  const members = await Promise.all(devices.map(async (name) => ({
    name,
    device: simulate(await openDevice("wasm", { threads: 1, together: true }), {
      clock,
      secondsOf: ({ graph: { nodes } }, bindings) =>
        secondsOf(bindings) * nodes.filter(({ name }) => /\.(attention|down)$/.test(name)).length,
    }),
  })));
  const device = createPlacedDevice({
    ...{ members, precision: "exact", lanes: slots },
    rulesOf: (graph) => groupRules(text, { layers: countLayers(graph), nameOf: (name) => name }),
  });
  return {
    executable: await prepareExecutable(device.backend, { plan: toyPlan(rows), slots }),
    clock,
  };
}

/** Tokens of `count` queries that run side by side, and how long that takes. */
async function run(row: Row, count: number): Promise<{ seconds: number; tokens: number[][] }> {
  // A stage is its layers, and each layer a half for the attention and one for what follows.
  const half = row.stage_s * row.groups / LAYERS / 2;
  const { executable, clock } = await prepare(PLACEMENTS[row.strategy]!, {
    ...{ rows: 1, slots: row.groups, secondsOf: () => half },
  });
  const lanes: readonly Executable[] = executable.lanes ?? [executable];
  const tokens = await Promise.all(
    lanes.slice(0, count).map((lane, query) => decode(lane, executable.openSlot(), query)),
  );
  const seconds = clock.now;
  executable.dispose();
  return { seconds, tokens };
}

async function decode(lane: Executable, slot: number, query: number): Promise<number[]> {
  const step = createStep(1), tokens = [query + 1];
  for (let position = 0; position < TOKENS; position++) {
    clearStep(step);
    addRows(step, {
      tokens,
      from: position,
      to: position + 1,
      position,
      slot,
      wanted: -1,
      wantedRows: 1,
      scales: [],
    });
    await lane.run(step);
    const row = lane.logits(0);
    tokens.push(row.indexOf(row.reduce((most, value) => Math.max(most, value))));
  }
  return tokens;
}

for (const row of table5) {
  Deno.test(`queries over ${PLACEMENTS[row.strategy]} get ${row.groups} times what one alone gets`, async () => {
    const alone = await run(row, 1), all = await run(row, row.groups);
    assertAlmostEquals(TOKENS / alone.seconds, row.decode_tok_s, 1e-6);
    const ratio = row.groups * alone.seconds / all.seconds;
    assertAlmostEquals(ratio, row.throughput_over_decode_simulated_200_tokens, 1e-3);
    assertEquals(all.tokens[0], alone.tokens[0]);
  });
}

/** The logits behind a prompt alone, and how long that takes where each row of a layer takes a second. */
async function runPrompt(
  text: string,
  slots: number,
): Promise<{ logits: number[]; seconds: number }> {
  const { executable, clock } = await prepare(text, {
    rows: PROMPT,
    slots,
    secondsOf: ({ M }) => M! / 2,
  });
  const [lane = executable] = executable.lanes ?? [];
  const tokens = Array.from({ length: PROMPT }, (_, i) => (i * i + 3) % TOY.vocabulary);
  const step = createStep(PROMPT);
  addRows(step, { tokens, slot: executable.openSlot(), wanted: -1 });
  await lane.run(step);
  const logits = [...lane.logits(PROMPT - 1)], seconds = clock.now;
  executable.dispose();
  return { logits, seconds };
}

for (const [text, groups] of [["0;1", 2], ["0;1;2;3", 4], ["0&1;2&3", 2]] as const) {
  Deno.test(`a prompt alone over ${text} goes through the groups in chunks`, async () => {
    const whole = await runPrompt("0", 1), { logits, seconds } = await runPrompt(text, groups);
    assertEquals(whole.seconds, PROMPT * LAYERS);
    // 8 chunks: the last one reaches the last group when that has done the others.
    assertAlmostEquals(seconds, whole.seconds / groups * (8 + groups - 1) / 8, 1e-6);
    const off = Math.max(...logits.map((value, i) => Math.abs(value - whole.logits[i]!)));
    assert(off <= 1e-3, `off by ${off}`);
  });
}
