// A low-rank adapter (LoRA, arXiv 2106.09685): for some matrices W [N, K] of a model two narrow ones, A [r, K] and
// B [N, r], by which y = W x becomes y = W x + s · B (A x), s = alpha / r. Two ways of storing them are read
// (peft.ts, gguf_adapter.ts); this file is what both come to, and how one is opened.
//
// Embeddings and experts may be adapted too. Left out, and refused by name: adapters that replace whole tensors or
// biases, magnitudes (DoRA), and the shared table of an encoder-decoder, of which PEFT itself changes one use and
// leaves the others.

import { FormatError } from "../../errors.ts";
import { openModel } from "../open_model.ts";
import type { WeightFile } from "../../formats/source.ts";
import type { AdapterOptions } from "../../decode/model.ts";
import { readGgufAdapter } from "./gguf_adapter.ts";
import type { AdapterContent } from "./pairs.ts";
import { readPeftAdapter } from "./peft.ts";
import { pathOf } from "../../io.ts";
import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";

/** An adapter whose header was read. */
export interface Adapter extends AdapterContent {
  readonly name: string;
  readonly scale: number;
  readonly file: WeightFile;
}

/**
 * Opens an adapter; its weights stay in the file until the model is loaded.
 *
 * @throws {FormatError} If it is no adapter, or its matrices do not fit together.
 * @throws {UnsupportedError} If it holds more than pairs of matrices.
 */
async function openAdapter(
  { path, scale = 1, name = nameOf(path) }: AdapterOptions,
): Promise<Adapter> {
  if (!Number.isFinite(scale)) {
    throw new RangeError(`Cannot use adapter ${name} with scale ${scale}: it is a finite number`);
  }
  const file = await openModel(path);
  try {
    const content = file.kind === "gguf" ? readGgufAdapter(file) : await readPeftAdapter(file);
    if (content.pairs.size === 0) {
      throw new FormatError("holds no adapter matrices", { file: path });
    }
    return { ...content, name, scale, file };
  } catch (error) {
    file.close();
    throw error;
  }
}

/** Adapters whose files are open until they are disposed of. */
export interface OpenAdapters extends Disposable {
  readonly all: readonly Adapter[];
}

const KEYS: OptionKeys<AdapterOptions> = { path: true, scale: true, name: true };

/**
 * Opens several.
 *
 * @throws {RangeError} If two have one name. @throws As `openAdapter`.
 */
export async function openAdapters(
  given: readonly (string | AdapterOptions)[] = [],
): Promise<OpenAdapters> {
  const all: Adapter[] = [];
  const close = () => all.forEach(({ file }) => file.close());
  try {
    for (const one of given) {
      if (typeof one !== "string") checkOptionKeys(one, { of: "adapters", known: KEYS });
      const { path, ...rest } = typeof one === "string" ? { path: one } : one;
      const adapter = await openAdapter({ ...rest, path: pathOf(path) });
      all.push(adapter);
      if (all.filter(({ name }) => name === adapter.name).length > 1) {
        throw new RangeError(
          `Cannot load two adapters named ${adapter.name}: give one of them another name`,
        );
      }
    }
  } catch (error) {
    close();
    throw error;
  }
  return { all, [Symbol.dispose]: close };
}

function nameOf(path: string): string {
  const parts = path.replace(/[/\\]+$/, "").split(/[/\\]/);
  const last = parts.at(-1)!;
  const isUsual = /^adapter_model\.\w+$/.test(last);
  return isUsual && parts.length > 1
    ? parts.at(-2)!
    : last.replace(/\.(gguf|safetensors|bin)$/, "");
}
