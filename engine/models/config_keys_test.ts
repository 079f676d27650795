// No key of a config.json is read past: each is set to an unusual value, and then the graph is another, or the key is
// refused or told by name, or names.json or the spec lists it as harmless and says why. The same for keys that specs
// read and a config leaves out, and for one that nobody knows.

import { assertEquals } from "@std/assert";
import { fixturePath, readFixture } from "../../tests/support/fixtures.ts";
import { modelOf, outcomeOf } from "../../tests/support/key_outcomes.ts";
import { checkpointPath, isSeeded } from "../../tests/support/seeded_weights.ts";
import type { WeightFile } from "../formats/source.ts";
import { openModel } from "./open_model.ts";
import { chooseSpec } from "./specs/mod.ts";

/** Keys of the file, of the spec, and a strange one; of several spellings of a number only the one that counts. */
function keysOf(
  { metadata }: WeightFile,
  { names }: ReturnType<typeof chooseSpec>["resolved"],
): string[] {
  const spellings = Object.values(names.hyperparameters).flatMap((keys) => {
    const counts = keys.find((key) => metadata.has(key)) ?? keys[0];
    return counts === undefined || counts.includes(".") ? [] : [counts];
  });
  const expected = Object.keys(names.expected).filter((key) => !key.includes("."));
  return [...new Set([...metadata.keys(), ...spellings, ...expected, "brand_new"])];
}

const FOLDERS = [...Deno.readDirSync(fixturePath("models"))].map(({ name }) => name).sort()
  .filter((name) => {
    try {
      readFixture(`models/${name}/config.json`);
      return name !== "llama_formats"; // containers of other kinds
    } catch {
      return false;
    }
  });

for (const name of FOLDERS) {
  Deno.test(`${name}: no key of config.json is read past`, async () => {
    const path = isSeeded(fixturePath(`models/${name}`))
      ? checkpointPath(name)
      : fixturePath(`models/${name}`);
    const file = await openModel(path);
    try {
      const base = await modelOf(file);
      const past: string[] = [];
      for (const key of keysOf(file, chooseSpec(file).resolved)) {
        const outcome = await outcomeOf(file, key, base);
        if (outcome === "read past") past.push(key);
        if (key === "brand_new") assertEquals(outcome, "told");
      }
      assertEquals(past, []);
    } finally {
      file.close();
    }
  });
}
