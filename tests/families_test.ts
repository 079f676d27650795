// Every family in tests/fixtures/models on both devices, from the inside: the state after each layer and the
// experts that the router chose, as outside implementations have them, under today's config names and those of
// before. Logits and tokens through the public interface are in models_test.ts.

import { assert, assertEquals } from "@std/assert";
import { openModel } from "../engine/models/open_model.ts";
import type { MetadataValue, WeightFile } from "../engine/formats/source.ts";
import { buildModel, type ModelParts, readModelParts } from "../engine/models/build.ts";
import { openDevice } from "../engine/run/devices.ts";
import { chooseSpec } from "../engine/models/specs/mod.ts";
import type { PreparedPlan } from "../engine/run/backend.ts";
import { plan } from "../engine/plan/planner.ts";
import { fixturePath, readFixture } from "./support/fixtures.ts";
import { contents } from "./support/graph_contents.ts";
import { checkpointPath } from "./support/seeded_weights.ts";

interface Case {
  readonly input_ids: readonly number[];
  readonly logits_first8: readonly (readonly number[])[];
  readonly hidden_last_position_first8: readonly (readonly number[])[];
  readonly moe_layer?: number;
  readonly experts?: readonly (readonly number[])[];
  readonly expert_order?: string;
}

interface Expected {
  readonly kind: string;
  readonly cases?: readonly Case[];
}

interface Family {
  readonly name: string;
  readonly expected: Expected & { readonly cases: readonly Case[] };
}

const FAMILIES: readonly Family[] = [...Deno.readDirSync(fixturePath("models"))]
  .map(({ name }) => name).sort()
  .flatMap((name) => {
    const expected = readJson<Expected>(`models/${name}/expected.json`);
    return expected?.kind === "causal" && expected.cases
      ? [{ name, expected: expected as Family["expected"] }]
      : [];
  });
/** Relative to the largest of a row; hidden states reach hundreds where logits are near 1. */
const TOLERANCE = 3e-4;

function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(readFixture(path)) as T;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return;
    throw error;
  }
}

/** A family's file under one of its configs. */
async function withParts<T>(
  { name }: Family,
  config: string,
  use: (parts: ModelParts) => Promise<T>,
): Promise<T> {
  const stored = await openModel(checkpointPath(name));
  try {
    const json = readJson<Record<string, MetadataValue>>(`models/${name}/${config}`)!;
    const file: WeightFile = { ...stored, metadata: new Map(Object.entries(json)) };
    const { resolved, architecture } = chooseSpec(file);
    return await use(readModelParts(resolved, { stored: file, architecture }));
  } finally {
    stored.close();
  }
}

const OPTIONS = { capacity: 32, cacheType: "f32", embeddings: false } as const;

/** Runs a prompt and gives the executable, whose outputs are then read. */
async function run(executable: PreparedPlan, ids: readonly number[]): Promise<void> {
  const slot = executable.openSlot();
  try {
    ids.forEach((id, row) => {
      executable.input("tokens")[row] = id;
      executable.input("positions")[row] = row;
      executable.input("slots")[row] = slot;
      executable.input("logit_rows")[row] = row;
    });
    await executable.run({ M: ids.length, L: ids.length });
  } finally {
    executable.closeSlot(slot);
  }
}

function assertRow(
  { data, row, width }: { data: ArrayLike<number | bigint>; row: number; width: number },
  expected: readonly number[],
  what: string,
): void {
  const largest = Math.max(1, ...expected.map(Math.abs));
  expected.forEach((value, i) => {
    const actual = Number(data[row * width + i]);
    assert(
      Math.abs(actual - value) <= TOLERANCE * largest,
      `${what}: value ${i} is ${actual} and must be ${value}`,
    );
  });
}

for (const device of ["reference", "wasm"] as const) {
  for (const family of FAMILIES) {
    Deno.test(`${device}: ${family.name} gives the layers' states and experts of the reference`, () =>
      withParts(family, "config.json", async (parts) => {
        const { hidden, vocabulary, expertsUsed = 0 } = parts.params;
        const { graph } = await buildModel(parts, { ...OPTIONS, observe: true });
        const { backend } = await openDevice(device, { threads: 1 });
        const planned = plan(graph, { limits: { M: 32, L: 32 } });
        const executable = await backend.prepare(planned, { slots: 1 });
        try {
          for (const one of family.expected.cases) {
            await run(executable, one.input_ids);
            one.logits_first8.forEach((row, position) => {
              const data = executable.output("logits");
              assertRow({ data, row: position, width: vocabulary }, row, `logits at ${position}`);
            });
            one.hidden_last_position_first8.forEach((row, layer) => {
              const name = layer === 0 ? "layers.input" : `layers.${layer - 1}.output`;
              const last = one.input_ids.length - 1;
              assertRow({ data: executable.output(name), row: last, width: hidden }, row, name);
            });
            const chosen = one.experts && executable.output(`layers.${one.moe_layer}.experts`);
            const experts = one.experts?.map((_, row) => {
              const ids = [...chosen!.slice(row * expertsUsed, (row + 1) * expertsUsed)].map(
                Number,
              );
              return one.expert_order === "ascending ids" ? ids.sort((a, b) => a - b) : ids;
            });
            assertEquals(experts, one.experts);
          }
        } finally {
          executable.dispose();
        }
      }));
  }
}

for (const family of FAMILIES) {
  const older = readJson(`models/${family.name}/config.v4.json`);
  if (!older) continue;
  Deno.test(`${family.name}: older config names build the same graph, and no tensor is left over`, async () => {
    const built = (config: string) =>
      withParts(family, config, (parts) => buildModel(parts, { ...OPTIONS, spans: true }));
    const [today, before] = [await built("config.json"), await built("config.v4.json")];
    assertEquals(contents(before.graph), contents(today.graph));
    assertEquals(today.warnings, []);
  });
}

Deno.test("families of every atom are among the fixtures", () => {
  const names = FAMILIES.map(({ name }) => name);
  const wanted = [
    ...["baichuan2_13b", "bloom", "chatglm2", "cohere", "deepseek_v3", "falcon_40b", "falcon_7b"],
    ...["gemma2", "gpt2", "gpt_oss", "granite", "olmoe", "opt_350m", "phi", "phi3"],
    ...["phi3_longrope", "qwen2_moe", "smollm3", "stablelm"],
  ];
  assertEquals(wanted.filter((name) => !names.includes(name)), []);
});
