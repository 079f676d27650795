// Rewrites the tiny checkpoints as GGUF files, the way the converters of llama.cpp do: their names, their order
// of rows (rotary pairs side by side, fused projections as all queries, all keys, all values), stacked experts,
// norms with 1 added. It is told per family what to do and knows nothing of specs, so that it can judge them.

import { getFormat } from "../../quant/mod.ts";
import { openModel } from "../../engine/models/open_model.ts";
import type { MetadataValue } from "../../engine/formats/source.ts";
import { type TensorSpec, type Typed, writeGguf } from "./write_gguf.ts";

/** A tensor in memory. */
export interface Matrix {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/** What becomes of one tensor: new names with what lies under them. */
export type Change = (name: string, tensor: Matrix) => readonly (readonly [string, Matrix])[];

/** How a family is rewritten. */
export interface GgufRule {
  /** `general.architecture`. */
  readonly arch: string;
  /** Keys after the architecture, from config.json. */
  metadata(config: Readonly<Record<string, MetadataValue>>): Readonly<Record<string, Typed>>;
  /** Keys that do not begin with the architecture. */
  plain?(config: Readonly<Record<string, MetadataValue>>): Readonly<Record<string, Typed>>;
  /** Names: what a pattern matches becomes the text, `$1` being the layer. The first that matches counts. */
  readonly names: readonly (readonly [RegExp, string])[];
  /** Changes of tensors under their new names; the first that matches counts. */
  changes?(config: Readonly<Record<string, number>>): readonly (readonly [RegExp, Change])[];
  /** What sets it apart from other rules of the folder. */
  readonly title?: string;
  /** What the files do not say and llama.cpp knows by heart: merged into the spec for GGUF. */
  readonly spec?: Readonly<Record<string, unknown>>;
  /** Changes of all tensors together. */
  after?(
    tensors: readonly (readonly [string, Matrix])[],
  ): readonly (readonly [string, Matrix])[];
  /** Number formats of tensors by name; F32 where it says nothing. */
  format?(name: string): string | undefined;
  /** Tensors that no checkpoint has. */
  extra?(config: Readonly<Record<string, MetadataValue>>): readonly (readonly [string, Matrix])[];
}

/** A GGUF file of a checkpoint folder. */
export async function toGguf(
  folder: string,
  config: Readonly<Record<string, MetadataValue>>,
  rule: GgufRule,
): Promise<Uint8Array<ArrayBuffer>> {
  const numbers = config as Readonly<Record<string, number>>;
  const changes = rule.changes?.(numbers) ?? [];
  const written: [string, Matrix][] = [...rule.extra?.(config) ?? []].map(([a, b]) => [a, b]);
  const experts = new Map<string, Matrix[]>();
  for (const [name, tensor] of await readAll(folder)) {
    if (/(inv_freq|masked_bias|\.attn\.bias)$/.test(name)) continue;
    const found = rule.names.find(([pattern]) => pattern.test(name));
    if (!found) throw new Error(`${folder}: no name for ${name}`);
    const renamed = name.replace(...found);
    const change = changes.find(([pattern]) => pattern.test(renamed))?.[1];
    for (const [own, result] of change?.(renamed, tensor) ?? [[renamed, tensor]]) {
      const [stacked, expert] = own.split("#");
      if (expert === undefined) written.push([own, result]);
      else {
        const stack = experts.get(stacked!) ?? [];
        stack[Number(expert)] = result;
        experts.set(stacked!, stack);
      }
    }
  }
  for (const [name, stack] of experts) written.push([name, stackOf(stack)]);
  const keys = Object.entries(rule.metadata(config))
    .map(([key, value]) => [`${rule.arch}.${key}`, value] as const);
  return writeGguf(
    {
      "general.architecture": ["string", rule.arch],
      ...Object.fromEntries(keys),
      ...rule.plain?.(config),
    },
    (rule.after?.(written) ?? written).map(([name, tensor]) =>
      specOf(name, tensor, rule.format?.(name) ?? "F32")
    ),
  );
}

async function readAll(folder: string): Promise<Map<string, Matrix>> {
  const file = await openModel(folder);
  const all = new Map<string, Matrix>();
  try {
    for (const { name, shape, format, source, offset, byteLength } of file.tensors.values()) {
      const bytes = new Uint8Array(byteLength);
      await source.readInto(offset, bytes);
      const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
      getFormat(format).decode(bytes, values);
      all.set(name, { shape, values });
    }
    return all;
  } finally {
    file.close();
  }
}

function specOf(name: string, { shape, values }: Matrix, format: string): TensorSpec {
  const { ggmlType, encode, blockSize, blockBytes } = getFormat(format);
  const data = new Uint8Array(values.length / blockSize * blockBytes);
  encode!(values, data);
  return { name, dims: shape.toReversed(), type: ggmlType!, data };
}

function stackOf(stack: readonly Matrix[]): Matrix {
  const values = Float32Array.from(stack.flatMap((one) => [...one.values]));
  return { shape: [stack.length, ...stack[0]!.shape], values };
}

/** Matrices (or stacks of them) one below the other; vectors one behind the other. */
export function concat(tensors: readonly Matrix[]): Matrix {
  const axis = Math.max(0, tensors[0]!.shape.length - 2);
  const shape = [...tensors[0]!.shape];
  shape[axis] = tensors.reduce((sum, one) => sum + one.shape[axis]!, 0);
  const outer = shape.slice(0, axis).reduce((a, b) => a * b, 1);
  const values = Array.from({ length: outer }, (_, i) =>
    tensors.flatMap((one) => {
      const size = one.values.length / outer;
      return [...one.values.subarray(i * size, (i + 1) * size)];
    })).flat();
  return { shape, values: Float32Array.from(values) };
}

/** Rows of a matrix (or numbers of a vector) in another order: row i of the result is row `order[i]`. */
export function pick({ shape, values }: Matrix, order: readonly number[]): Matrix {
  const width = shape.slice(1).reduce((a, b) => a * b, 1);
  const rows = order.flatMap((row) => [...values.subarray(row * width, (row + 1) * width)]);
  return { shape: [order.length, ...shape.slice(1)], values: Float32Array.from(rows) };
}

/** Channels i and i + d/2 of each head side by side. */
export function pairsTogether(tensor: Matrix, heads: number): Matrix {
  const rows = tensor.shape[0]!, size = rows / heads;
  return pick(
    tensor,
    Array.from({ length: rows }, (_, row) => {
      const head = Math.floor(row / size), channel = row % size;
      return head * size + (channel % 2) * (size / 2) + Math.floor(channel / 2);
    }),
  );
}

/** Groups of [queries, key, value] as all queries, all keys, all values. */
export function ungroup(tensor: Matrix, groups: number, queries: number, size: number): Matrix {
  const order = [[0, queries], [queries, 1], [queries + 1, 1]].flatMap(([from, count]) =>
    Array.from({ length: groups }, (_, group) =>
      Array.from(
        { length: count! * size },
        (_, row) => (group * (queries + 2) + from!) * size + row,
      )).flat()
  );
  return pick(tensor, order);
}

/** [in, out] as [out, in]; of a stack, each matrix. */
export function transpose({ shape, values }: Matrix): Matrix {
  const [rows, columns] = shape.slice(-2) as [number, number];
  const area = rows * columns;
  return {
    shape: [...shape.slice(0, -2), columns, rows],
    values: values.map((_, i) => {
      const at = i % area;
      return values[i - at + (at % rows) * columns + Math.floor(at / rows)]!;
    }),
  };
}
