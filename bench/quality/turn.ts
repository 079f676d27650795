// A GGUF decoder whose stream lies in another basis (turn_rules.ts): the same function, with weights that
// lie on no quantiser's grid. Public small models come in 4 bits; stored in the same format again they show no
// error at all, so they cannot rank formats before they are turned. Written in F32, tensor by tensor.
// A width above the model's own makes rows whole blocks of 256, which neither 576 nor 640 are.

import { UnsupportedError } from "../../engine/errors.ts";
import type { TensorInfo, WeightFile } from "../../engine/formats/source.ts";
import { readTensorRows } from "../../engine/formats/tensor_rows.ts";
import {
  createGgufHead,
  type GgufEntries,
  paddingAfter,
  readGgufEntries,
  setGgufIntegers,
} from "../../engine/formats/gguf/write.ts";
import { createFile, type NewFile, openFile } from "../../engine/io.ts";
import { readModelParts } from "../../engine/models/build.ts";
import { factorOf } from "../../engine/models/sizes.ts";
import { chooseSpec } from "../../engine/models/specs/mod.ts";
import { getFormat } from "../../quant/mod.ts";
import { layerOf } from "../../quant/tensor_roles.ts";
import { createTurn, type Turn } from "./orthogonal.ts";
import { type Gains, TIED_HEAD, type TurnRule, turnRule } from "./turn_rules.ts";

/** Options of {@linkcode turnModel}. */
export interface TurnOptions {
  /** Seed of the isometry. Default 1. */
  readonly seed?: number;
  /** Dimensions of the new stream. Default: as many as before. */
  readonly width?: number;
  /** What becomes of gains before blocks. Default: folded, and kept where there are gains behind blocks too. */
  readonly gains?: Gains;
  /** So many layers from the first on; the rest is left out. Default: all. */
  readonly layers?: number;
}

interface TurnedTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly tensor: TensorInfo;
  readonly rule: TurnRule;
}

/**
 * Writes the turned model to a new GGUF file.
 *
 * @throws {UnsupportedError} If it is no GGUF decoder with RMS norms, or has a tensor that no rule is for.
 * @throws {RangeError} If the width is below the model's.
 */
export async function turnModel(
  file: WeightFile,
  path: string,
  {
    seed = 1,
    width,
    gains = hasSandwichNorms(file) ? "kept" : "folded",
    layers = Infinity,
  }: TurnOptions = {},
): Promise<void> {
  const { resolved, architecture } = chooseSpec(file);
  const { params, resolved: { spec } } = readModelParts(resolved, { stored: file, architecture });
  if (file.kind !== "gguf" || spec.norm.kind !== "rms") {
    throw new UnsupportedError("only GGUF files of decoders with RMS norms are turned", {
      file: file.name,
    });
  }
  const turn = createTurn(params.hidden, width ?? params.hidden, seed);
  const scaleOf = (hidden: number) =>
    factorOf(spec.embedding.scale, { params: { ...params, hidden }, place: "embedding.scale" });
  const surroundings: Surroundings = {
    file,
    turn,
    tableFactor: scaleOf(turn.size) / scaleOf(turn.width),
    normFactor: Math.sqrt(turn.size / turn.width),
  };
  const tensors = planTensors(surroundings, gains)
    .filter(({ name }) => (layerOf(name) ?? 0) < layers);
  const source = openFile(file.name);
  const entries = await readGgufEntries(source).finally(() => source.close());
  const head = createGgufHead(
    withNumbers(entries, architecture, {
      "block_count": Math.min(layers, params.layers),
      "embedding_length": turn.width,
      "attention.key_length": params.headDim,
      "attention.value_length": params.valueDim ?? params.headDim,
    }, { "attention.layer_norm_rms_epsilon": params.normEpsilon * turn.size / turn.width }),
    tensors.map(({ name, shape }) => ({
      ...{ name, shape, format: getFormat("F32"), byteLength: byteLength(shape) },
    })),
  );
  using output = createFile(path);
  output.write(head.bytes);
  for (const tensor of tensors) {
    await writeTurned(tensor, surroundings, output);
    output.write(new Uint8Array(paddingAfter(byteLength(tensor.shape), head.alignment)));
  }
  output.finish();
}

function hasSandwichNorms({ tensors }: WeightFile): boolean {
  return [...tensors.keys()].some((name) => turnRule(name, "folded")?.kind === "gain");
}

function planTensors({ file, turn, tableFactor }: Surroundings, gains: Gains): TurnedTensor[] {
  const planned = [...file.tensors.values()].map((tensor): TurnedTensor => {
    const rule = turnRule(tensor.name, gains);
    if (rule) return { name: tensor.name, shape: shapeOf(tensor, rule, turn), tensor, rule };
    throw new UnsupportedError("what turning does to it is not known", {
      file: file.name,
      place: `tensor ${JSON.stringify(tensor.name)}`,
    });
  });
  const table = planned.find(({ rule }) => rule.kind === "table");
  const isSame = gains === "kept" && tableFactor === 1;
  if (!table || isSame || file.tensors.has(TIED_HEAD.name)) return planned;
  const { name, rule: folded } = TIED_HEAD;
  return [...planned, { ...table, name, rule: gains === "kept" ? { kind: "reads" } : folded }];
}

function shapeOf({ shape }: TensorInfo, { kind }: TurnRule, { width }: Turn): readonly number[] {
  switch (kind) {
    case "table":
    case "reads":
      return [shape[0]!, width];
    case "writes":
      return [width, ...shape.slice(1)];
    case "ones":
      return [width];
    case "gain":
      return [width, width];
    case "keep":
      return shape;
  }
}

function byteLength(shape: readonly number[]): number {
  return 4 * shape.reduce((product, size) => product * size, 1);
}

interface Surroundings {
  readonly file: WeightFile;
  readonly turn: Turn;
  /** The table's part of a factor that grows with the width. */
  readonly tableFactor: number;
  /** √(size / width): norms are over more dimensions, of which some are empty. */
  readonly normFactor: number;
}

async function writeTurned(
  { tensor, rule, shape }: TurnedTensor,
  { file, turn, tableFactor, normFactor }: Surroundings,
  output: NewFile,
): Promise<void> {
  const write = (values: Float32Array<ArrayBuffer>) => output.write(new Uint8Array(values.buffer));
  switch (rule.kind) {
    case "table":
    case "reads": {
      const gain = rule.kind === "reads" && rule.norm !== undefined
        ? (await valuesOf(file.tensors.get(rule.norm)!)).map((value) => value * normFactor)
        : new Float32Array(turn.size).fill(rule.kind === "table" ? tableFactor : 1);
      for await (const { values } of readTensorRows(tensor, { format: getFormat(tensor.format) })) {
        for (let i = 0; i < values.length; i++) values[i]! *= gain[i % turn.size]!;
        output.write(bytesOf(turn.rows(values)));
      }
      return;
    }
    case "writes":
      return write(turnColumns(await valuesOf(tensor), turn));
    case "ones":
      return write(new Float32Array(turn.width).fill(1));
    case "gain": {
      const gain = await valuesOf(tensor);
      const diagonal = new Float32Array(turn.size * turn.size);
      gain.forEach((value, i) => diagonal[i * turn.size + i] = value * normFactor);
      return write(turnColumns(turn.rows(diagonal), turn));
    }
    case "keep":
      if (byteLength(shape) > 0) write(await valuesOf(tensor));
  }
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array {
  return new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
}

/** Q W of a matrix, or Q b of a vector. */
function turnColumns(values: Float32Array, turn: Turn): Float32Array<ArrayBuffer> {
  return transpose(turn.rows(transpose(values, turn.size)), values.length / turn.size);
}

/** The transpose of a matrix of so many rows. */
function transpose(values: Float32Array, rows: number): Float32Array<ArrayBuffer> {
  const columns = values.length / rows;
  const out = new Float32Array(values.length);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) out[j * rows + i] = values[i * columns + j]!;
  }
  return out;
}

async function valuesOf(tensor: TensorInfo): Promise<Float32Array<ArrayBuffer>> {
  const all = new Float32Array(tensor.shape.reduce((product, size) => product * size, 1));
  for await (
    const { start, values } of readTensorRows(tensor, { format: getFormat(tensor.format) })
  ) {
    all.set(values, start);
  }
  return all;
}

const FLOAT32 = 6;

function withNumbers(
  entries: GgufEntries,
  architecture: string,
  integers: Readonly<Record<string, number>>,
  floats: Readonly<Record<string, number>>,
): GgufEntries {
  const prefixed = Object.entries(integers).map((
    [key, value],
  ) => [`${architecture}.${key}`, value]);
  const result = new Map(setGgufIntegers(entries, {
    ...Object.fromEntries(prefixed),
    "general.file_type": 0,
  }));
  for (const [name, value] of Object.entries(floats)) {
    const key = new TextEncoder().encode(`${architecture}.${name}`);
    const entry = new Uint8Array(8 + key.length + 8);
    const view = new DataView(entry.buffer);
    view.setBigUint64(0, BigInt(key.length), true);
    entry.set(key, 8);
    view.setUint32(8 + key.length, FLOAT32, true);
    view.setFloat32(12 + key.length, value, true);
    result.set(`${architecture}.${name}`, entry);
  }
  return result;
}
