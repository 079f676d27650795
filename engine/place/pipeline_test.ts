// Queries under way at once over several devices, by a fake clock: how much more they get than one alone is the number of
// groups (Inferflow's table 5; the figures stand in the fixture, with the formulas they come from).

import { assertAlmostEquals, assertEquals } from "@std/assert";
import { readFixture } from "../../tests/support/fixtures.ts";
import { TOY_LIMITS, toyDecoder } from "../../tests/support/toy_decoder.ts";
import { plan } from "../plan/planner.ts";
import { openDevice } from "../run/devices.ts";
import { type Executable, prepareExecutable } from "../run/executable.ts";
import { addRows, clearStep, createStep } from "../run/step.ts";
import { createPlacedDevice } from "./placed_device.ts";
import { countLayers, groupRules } from "./rules.ts";
import { createFakeClock, simulate } from "./simulated_device.ts";

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
const PLAN = plan(toyDecoder("f16", "F32", { layers: LAYERS, kvHeads: 4, capacity: 256 }), {
  limits: TOY_LIMITS,
});

/** Tokens of `count` queries that run side by side, and how long that takes. */
async function run(row: Row, count: number): Promise<{ seconds: number; tokens: number[][] }> {
  const clock = createFakeClock();
  const text = PLACEMENTS[row.strategy]!, devices = text.split(/[;&]/);
  // A stage is its layers, and each layer a half for the attention and one for what follows.
  const half = row.stage_s * row.groups / LAYERS / 2;
  const members = await Promise.all(devices.map(async (name) => ({
    name,
    device: simulate(await openDevice("wasm", { threads: 1, together: true }), {
      clock,
      secondsOf: ({ graph: { nodes } }) =>
        half * nodes.filter(({ name }) => /\.(attention|down)$/.test(name)).length,
    }),
  })));
  const device = createPlacedDevice({
    ...{ members, precision: "exact", lanes: row.groups },
    rulesOf: (graph) => groupRules(text, { layers: countLayers(graph), nameOf: (name) => name }),
  });
  const executable = await prepareExecutable(device.backend, { plan: PLAN, slots: row.groups });
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
