// Checkpoints whose weights are a seed. Random numbers need not be stored: weights.json says what the tensors
// are called and how large they are, and a hash of name, seed and index gives their values, here and in
// tools/fixtures/make_models.py, which lets transformers compute the answers for them. A value is
// `base + scale · n / 128` with n from -128 to 127 and scales that are powers of two, so that F16, BF16 and F32
// all hold it exactly.

import { getFormat } from "../../quant/mod.ts";
import { fixturePath } from "./fixtures.ts";
import { joinBytes, writeSafetensors } from "./write_gguf.ts";

interface SeededTensor {
  readonly shape: readonly number[];
  readonly scale: number;
  readonly base?: number;
}

/** Content of weights.json; a name with `{0-3}` stands for four tensors. */
export interface SeededWeights {
  readonly seed: number;
  readonly dtype: "F16" | "BF16" | "F32";
  readonly tensors: Readonly<Record<string, SeededTensor>>;
}

/** Values of one tensor. */
export function seededValues(name: string, seed: number, tensor: SeededTensor): Float32Array {
  const { shape, scale, base = 0 } = tensor;
  const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
  let start = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(name)) {
    start = Math.imul(start ^ byte, 0x01000193);
  }
  start += Math.imul(seed, 0x85ebca6b);
  for (let i = 0; i < values.length; i++) {
    let x = (Math.imul(i, 0x9e3779b1) + start) | 0;
    x = Math.imul(x ^ x >>> 16, 0x85ebca6b);
    x = Math.imul(x ^ x >>> 13, 0xc2b2ae35);
    x ^= x >>> 16;
    values[i] = base + scale * ((x >>> 24) - 128) / 128;
  }
  return values;
}

/** Names that a name with ranges stands for. */
function expand(name: string): string[] {
  const range = /\{(\d+)-(\d+)\}/.exec(name);
  if (!range) return [name];
  const [first, last] = [Number(range[1]), Number(range[2])];
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
    .flatMap((number) => expand(name.replace(range[0], String(number))));
}

/** The checkpoint as a safetensors file. */
export function seededSafetensors(
  { seed, dtype, tensors }: SeededWeights,
): Uint8Array<ArrayBuffer> {
  const format = getFormat(dtype);
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  const parts: Uint8Array[] = [];
  let offset = 0;
  for (const [pattern, tensor] of Object.entries(tensors)) {
    for (const name of expand(pattern)) {
      const values = seededValues(name, seed, tensor);
      const bytes = new Uint8Array(values.length * format.blockBytes);
      format.encode!(values, bytes);
      const end = offset + bytes.length;
      header[name] = { dtype, shape: tensor.shape, data_offsets: [offset, end] };
      parts.push(bytes);
      offset = end;
    }
  }
  return writeSafetensors(header, joinBytes(parts));
}

/** Files of a checkpoint beside its weights. */
const COPIED = /^(config|tokenizer).*\.json$/;

/** Writes a checkpoint folder: what lies beside weights.json, and its tensors. */
export function writeSeededCheckpoint(from: string, to: string): void {
  for (const { name } of Deno.readDirSync(from)) {
    if (COPIED.test(name)) Deno.copyFileSync(`${from}/${name}`, `${to}/${name}`);
  }
  const weights = JSON.parse(Deno.readTextFileSync(`${from}/weights.json`)) as SeededWeights;
  Deno.writeFileSync(`${to}/model.safetensors`, seededSafetensors(weights));
}

/** Whether a folder's weights are a seed. */
export function isSeeded(folder: string): boolean {
  try {
    return Deno.statSync(`${folder}/weights.json`).isFile;
  } catch {
    return false;
  }
}

const written = new Map<string, string>();

/**
 * A folder of tests/fixtures/models that can be loaded: itself, or one that is written for this process when
 * its weights are a seed, and removed at its end.
 */
export function checkpointPath(name: string): string {
  const folder = fixturePath(`models/${name}`);
  if (!isSeeded(folder)) return folder;
  const known = written.get(name);
  if (known !== undefined) return known;
  const path = Deno.makeTempDirSync({ prefix: `${name}-` });
  globalThis.addEventListener("unload", () => Deno.removeSync(path, { recursive: true }));
  writeSeededCheckpoint(folder, path);
  written.set(name, path);
  return path;
}
