// Models for tests. The tiny ones lie in tests/fixtures; the real ones are in the model cache (CI pulls
// them first) or in the folder that TROODON_TEST_MODELS names. A test that needs a real one goes through
// `testWith` and `modelNeed`, so that it is counted as skipped by name where the model is absent.

import { cacheFolder, entryFolder, readRecord } from "../../engine/formats/hub/cache.ts";
import { load } from "../../engine/models/load.ts";
import type { LoadOptions, Model } from "../../engine/decode/model.ts";
import { fixturePath } from "./fixtures.ts";
import type { Need } from "./skip.ts";

/** A tiny llama with a SentencePiece vocabulary of 288 tokens. */
export const TINY_LLAMA: string = fixturePath("models/llama_formats/llama.Q8_0.gguf");

const FILES: Readonly<Record<string, string>> = {
  "smollm2-135m": "smollm2.gguf",
  "gemma3-270m": "gemma3.gguf",
};

/** Loads the tiny llama, on the reference unless asked otherwise. */
export function loadTiny(options: LoadOptions = {}): Promise<Model> {
  return load(TINY_LLAMA, { device: "reference", ...options });
}

/** The same, trained for 4,096 tokens by its own word. */
export async function loadLongTiny(options: LoadOptions = {}): Promise<Model> {
  await using file = await writeLongTiny();
  return await load(file.path, { device: "reference", ...options });
}

/** A file of it, for the time that it is held. */
export async function writeLongTiny(): Promise<AsyncDisposable & { readonly path: string }> {
  const bytes = await Deno.readFile(TINY_LLAMA);
  const key = new TextEncoder().encode("llama.context_length");
  let at = 0;
  while (!key.every((byte, i) => bytes[at + i] === byte)) at++;
  // Behind a key stand its type and its value, a u32.
  new DataView(bytes.buffer).setUint32(at + key.length + 4, 4096, true);
  const path = await Deno.makeTempFile({ suffix: ".gguf" });
  await Deno.writeFile(path, bytes);
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path) };
}

/** Path of a real model by its catalogue name, or undefined if it is not on this machine. */
export function modelPath(name: string): string | undefined {
  const folder = Deno.env.get("TROODON_TEST_MODELS");
  if (folder) {
    const path = `${folder}/${FILES[name]}`;
    if (isFile(path)) return path;
  }
  const entry = entryFolder(cacheFolder(), name);
  const record = readRecord(entry);
  return record && `${entry}/${record.main}`;
}

/** A need of `testWith` for a real model. */
export function modelNeed(name: string): Need {
  return {
    what: `the model ${name}`,
    present: modelPath(name) !== undefined,
    remedy: `deno task troodon pull ${name}`,
  };
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
