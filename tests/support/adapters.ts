// Random adapters and the models that they come to when merged, for tests of adapters. Nothing of the engine's
// way of applying them is used here: B · A is added to the decoded weights in plain loops.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import { openModel } from "../../engine/models/open_model.ts";
import type { TensorInfo, WeightFile } from "../../engine/formats/source.ts";
import {
  f32Bytes,
  joinBytes,
  type TensorSpec,
  type Typed,
  writeGguf,
  writeSafetensors,
} from "./write_gguf.ts";
import { random } from "./weights.ts";

/** The two matrices of a pair, row by row. */
export interface TestPair {
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  readonly rank: number;
  /** A [rank, columns], B [rows, rank]. */
  readonly down: Float32Array;
  readonly up: Float32Array;
  /** Of an embedding: a weight [columns, rows], whose A PEFT calls otherwise and GGUF stores by token. */
  readonly isTable?: boolean;
}

/** A pair of random matrices that changes a weight of ordinary size noticeably. */
export function randomPair(
  name: string,
  [rows, columns]: readonly number[],
  rank: number,
): TestPair {
  const next = random(name.length + rows!);
  const values = (count: number) => Float32Array.from({ length: count }, () => next() - 0.5);
  return {
    ...{ name, rows: rows!, columns: columns!, rank },
    down: values(rank * columns!),
    up: values(rows! * rank),
  };
}

/** W + factor · B A of a weight [rows, columns], or of its transpose. */
export function merge(
  weight: Float32Array,
  pair: TestPair,
  { factor, transposed = false }: { readonly factor: number; readonly transposed?: boolean },
): Float32Array {
  const { rows, columns, rank, down, up } = pair;
  const merged = weight.slice();
  for (let n = 0; n < rows; n++) {
    for (let k = 0; k < columns; k++) {
      let sum = 0;
      for (let r = 0; r < rank; r++) sum += up[n * rank + r]! * down[r * columns + k]!;
      merged[transposed ? k * rows + n : n * columns + k]! += factor * sum;
    }
  }
  return merged;
}

/** A tensor's numbers. */
export async function decode({ format, shape, source, offset, byteLength }: TensorInfo) {
  const bytes = new Uint8Array(byteLength);
  await source.readInto(offset, bytes);
  const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
  if (formatBytes(getFormat(format), values.length) !== byteLength) throw new Error("wrong length");
  getFormat(format).decode(bytes, values);
  return values;
}

/** Changes a tensor's numbers, or leaves them. */
export type Change = (name: string, values: Float32Array) => Float32Array;

/** A safetensors file of float32 matrices and vectors. */
function writeTensors(
  path: string,
  tensors: readonly { name: string; shape: readonly number[]; values: Float32Array }[],
): void {
  const header: Record<string, unknown> = {};
  let at = 0;
  for (const { name, shape, values } of tensors) {
    header[name] = { dtype: "F32", shape, data_offsets: [at, at += values.byteLength] };
  }
  const data = joinBytes(tensors.map(({ values }) => f32Bytes([...values])));
  Deno.writeFileSync(path, writeSafetensors(header, data));
}

/** A model folder with float32 weights that `change` was applied to. */
export async function writeChangedFolder(from: string, to: string, change: Change): Promise<void> {
  const file = await openModel(from);
  const tensors = [];
  for (const tensor of file.tensors.values()) {
    const { name, shape } = tensor;
    tensors.push({ name, shape, values: change(name, await decode(tensor)) });
  }
  file.close();
  Deno.mkdirSync(to, { recursive: true });
  Deno.copyFileSync(`${from}/config.json`, `${to}/config.json`);
  writeTensors(`${to}/model.safetensors`, tensors);
}

/** The same for a GGUF file. */
export async function writeChangedGguf(from: string, to: string, change: Change): Promise<void> {
  const file = await openModel(from);
  const tensors: TensorSpec[] = [];
  for (const tensor of file.tensors.values()) {
    const data = f32Bytes([...change(tensor.name, await decode(tensor))]);
    tensors.push({ name: tensor.name, dims: [...tensor.shape].reverse(), type: 0, data });
  }
  Deno.writeFileSync(to, writeGguf(typedMetadata(file), tensors));
  file.close();
}

function typedMetadata({ metadata }: WeightFile): Record<string, Typed> {
  return Object.fromEntries([...metadata].map(([key, value]) => [key, typed(value)]));
}

function typed(value: unknown): Typed {
  if (typeof value === "string") return ["string", value];
  if (typeof value === "boolean") return ["bool", value];
  if (typeof value === "number") return [Number.isInteger(value) ? "u32" : "f32", value];
  const items = [...value as Iterable<unknown>];
  const of = typeof items[0] === "string"
    ? "string"
    : value instanceof Float32Array
    ? "f32"
    : "i32";
  return ["array", items, of];
}

/** A PEFT folder. */
export function writePeft(
  folder: string,
  pairs: readonly TestPair[],
  config: Readonly<Record<string, unknown>>,
): void {
  Deno.mkdirSync(folder, { recursive: true });
  const targets = pairs.map(({ name }) => name.replace(/\.weight$/, "").split(".").at(-1)!);
  const whole = {
    peft_type: "LORA",
    target_modules: [...new Set(targets)],
    bias: "none",
    ...config,
  };
  Deno.writeTextFileSync(`${folder}/adapter_config.json`, JSON.stringify(whole));
  writeTensors(
    `${folder}/adapter_model.safetensors`,
    pairs.flatMap(({ name, rank, rows, columns, down, up, isTable }) => {
      const module = `base_model.model.${name.replace(/\.weight$/, "")}`;
      const half = (side: string) =>
        `${module}.${isTable ? `lora_embedding_${side}` : `lora_${side}.weight`}`;
      return [
        { name: half("A"), shape: [rank, columns], values: down },
        { name: half("B"), shape: [rows, rank], values: up },
      ];
    }),
  );
}

/** A GGUF adapter; pairs of one name are the experts of a stack. */
export function writeGgufAdapter(
  path: string,
  pairs: readonly TestPair[],
  metadata: Readonly<Record<string, Typed>>,
): void {
  const tensors = [...Map.groupBy(pairs, ({ name }) => name)].flatMap(([name, stack]) => {
    const { rank, rows, columns, isTable } = stack[0]!;
    const outer = stack.length === 1 ? [] : [stack.length];
    const joined = (half: "down" | "up") => f32Bytes(stack.flatMap((one) => [...one[half]]));
    const table = stack[0]!.down.map((_, i, down) =>
      down[(i % rank) * columns + Math.floor(i / rank)]!
    );
    return [
      isTable
        ? { name: `${name}.lora_a`, dims: [rank, columns], type: 0, data: f32Bytes([...table]) }
        : {
          name: `${name}.lora_a`,
          dims: [columns, rank, ...outer],
          type: 0,
          data: joined("down"),
        },
      { name: `${name}.lora_b`, dims: [rank, rows, ...outer], type: 0, data: joined("up") },
    ];
  });
  const kind = {
    "general.type": ["string", "adapter"],
    "adapter.type": ["string", "lora"],
  } as const;
  Deno.writeFileSync(path, writeGguf({ ...kind, ...metadata }, tensors));
}
