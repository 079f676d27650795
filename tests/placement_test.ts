// Every family of language models over several devices: by layers, by heads and channels, by both. The logits must be those
// of one device, which outside implementations have given (families_test.ts), and greedy tokens the same.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { loadModel } from "../engine/models/load_file.ts";
import { UnsupportedError } from "../engine/errors.ts";
import type { Model } from "../engine/decode/model.ts";
import type { DeviceName } from "../engine/run/backend.ts";
import { type Device, openDevice } from "../engine/run/devices.ts";
import { createPlacedDevice } from "../engine/place/placed_device.ts";
import { countLayers, groupRules } from "../engine/place/rules.ts";
import { fixturePath, readFixture } from "./support/fixtures.ts";
import { withFolder } from "./support/folder.ts";
import { checkpointPath } from "./support/seeded_weights.ts";

const OPTIONS = { precision: "exact", contextLength: 32, kvFormat: "F32" } as const;
const PROMPT = [3, 1, 4, 1, 5, 9];
const TOKENS = 4;

interface Facts {
  readonly kind: string;
  readonly cases?: readonly unknown[];
}

const FAMILIES = [...Deno.readDirSync(fixturePath("models"))].map(({ name }) => name).sort()
  .filter((name) => {
    try {
      const { kind, cases } = JSON.parse(readFixture(`models/${name}/expected.json`)) as Facts;
      return kind === "causal" && cases !== undefined;
    } catch {
      return false;
    }
  });

/** Devices of one kind that share a model. */
async function placed(text: string, kinds: readonly DeviceName[], lanes = 1): Promise<Device> {
  const members = await Promise.all(kinds.map(async (name) => ({
    name,
    device: await openDevice(name, { threads: 1, together: true }),
  })));
  return createPlacedDevice({
    ...{ members, lanes, precision: OPTIONS.precision },
    rulesOf: (graph) => groupRules(text, { layers: countLayers(graph), nameOf: (name) => name }),
  });
}

interface Answer {
  readonly logits: readonly number[];
  readonly tokens: readonly number[];
}

async function answer(model: Model): Promise<Answer> {
  using session = model.createSession();
  await session.eval(PROMPT);
  const logits = [...session.logits()], tokens: number[] = [];
  for (let i = 0; i < TOKENS; i++) {
    const row = session.logits();
    const best = row.indexOf(row.reduce((most, value) => Math.max(most, value)));
    tokens.push(best);
    await session.eval([best]);
  }
  return { logits, tokens };
}

async function answerOn(name: string, device: Device): Promise<Answer> {
  using model = await loadModel(checkpointPath(name), { options: OPTIONS, device });
  return await answer(model);
}

function checkClose(actual: Answer, expected: Answer, what: string): void {
  const largest = Math.max(...expected.logits.map(Math.abs));
  const off = Math.max(...expected.logits.map((value, i) => Math.abs(value - actual.logits[i]!)));
  assert(off <= 1e-3 * Math.max(1, largest), `${what}: off by ${off}`);
  assertEquals(actual.tokens, expected.tokens, what);
}

/** What a group of two cannot share: odd numbers of heads, and what is normed or cached over all of them. */
const UNSHARED: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["baichuan2_13b", "bloom", "falcon_7b", "gemma", "gemma3_text", "gpt_bigcode"]
      .map((name) => [name, "heads cannot be split over 2 devices"]),
  ),
  ...Object.fromEntries(
    ["deepseek_v2", "deepseek_v3", "olmo2", "olmo3", "olmoe"]
      .map((name) => [name, "cannot be shared by heads"]),
  ),
};

for (const name of FAMILIES) {
  Deno.test(`${name} gives the same over several devices`, async () => {
    const expected = await answerOn(name, await openDevice("reference", {}));
    const on = async (text: string, kinds: readonly DeviceName[]) =>
      checkClose(await answerOn(name, await placed(text, kinds)), expected, text);
    await on("0;1", ["reference", "reference"]);
    const reason = UNSHARED[name];
    if (!reason) await on("0&1", ["reference", "reference"]);
    else {
      await assertRejects(() => on("0&1", ["reference", "reference"]), UnsupportedError, reason);
    }
  });
}

/** Checkpoints whose heads have a slope each (ALiBi), in a number that two devices share. */
const SLOPED: readonly (readonly [name: string, changes: object])[] = [
  ["bloom", { n_head: 6 }],
  ["baichuan2_13b", { num_attention_heads: 4 }],
  ["falcon_40b", { alibi: true }],
];

for (const [name, changes] of SLOPED) {
  Deno.test(`heads of ${name} take their own slopes along to the device that has them`, () =>
    withFolder(async (folder) => {
      const source = checkpointPath(name);
      for (const { name: file } of Deno.readDirSync(source)) {
        Deno.copyFileSync(`${source}/${file}`, `${folder}/${file}`);
      }
      const config = JSON.parse(Deno.readTextFileSync(`${source}/config.json`));
      Deno.writeTextFileSync(`${folder}/config.json`, JSON.stringify({ ...config, ...changes }));
      const on = async (device: Device) => {
        using model = await loadModel(folder, { options: OPTIONS, device });
        return await answer(model);
      };
      const expected = await on(await openDevice("reference", {}));
      for (const [text, count] of [["0&1", 2], ["0&1;2&3", 4]] as const) {
        checkClose(await on(await placed(text, Array(count).fill("reference"))), expected, text);
      }
    }));
}
