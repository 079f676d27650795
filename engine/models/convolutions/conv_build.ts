// Builds the graph of a network of convolutions (conv_spec.ts). A step is a table of M rows, a picture each: `patches`
// f32[M, channels · height · width]; `logit_rows` i32[L] says which pictures are wanted. Outputs: `vectors` f32[L, width],
// the mean of the last state over all places, `scores` f32[L, labels] where the file has a classifier, and the states
// themselves, `hidden` f32[M, width · height · width of the last stage], if they are asked for.

import { FormatError, UnsupportedError } from "../../errors.ts";
import type { TensorInfo, WeightFile } from "../../formats/source.ts";
import { createGraphBuilder, type GraphBuilder } from "../../graph/builder.ts";
import { type Dim, formatDim, symbol } from "../../graph/dim/mod.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { LIST, type ValueRule, whole } from "../../record.ts";
import type { PictureSize } from "../blocks/patches.ts";
import { isExpected } from "../hparams.ts";
import type { ConvSpec } from "./conv_spec.ts";
import { foldNorm } from "./fold_norm.ts";

/** A network's graph, and what was learnt on the way. */
export interface BuiltConvolutions {
  readonly graph: Graph;
  readonly channels: number;
  /** Width of a vector. */
  readonly width: number;
  /** Blocks of all stages. */
  readonly layers: number;
  /** Tensors that nothing asked for. */
  readonly unused: readonly string[];
}

/** Sizes of a network, checked. */
interface Sizes {
  readonly channels: number;
  readonly stem: number;
  readonly widths: readonly number[];
  readonly depths: readonly number[];
  readonly firstSteps: boolean;
  readonly activation: string;
  readonly block: ConvSpec["blocks"][string];
}

/**
 * Builds a network of convolutions for pictures of a size.
 *
 * @throws {FormatError} If the config has an impossible value, or a tensor is missing or has another shape than it says.
 * @throws {UnsupportedError} If the config asks for something that is not built.
 */
export function buildConvolutions(
  file: WeightFile,
  { spec, size: { width, height }, rows }: {
    readonly spec: ConvSpec;
    readonly size: PictureSize;
    /** Whether states are given out. */
    readonly rows: boolean;
  },
): BuiltConvolutions {
  const sizes = sizesOf(file, spec);
  const builder = createGraphBuilder(file.name, getOp);
  const tensors = new Tensors(file, spec);
  const M = symbol("M", { min: 1 }), L = symbol("L", { min: 0 });
  const { channels } = sizes;
  const apply = (op: string, inputs: Value[], attributes: object, name: string) =>
    builder.op(op, inputs, attributes as never, name)[0]!;
  const patches = builder.input("patches", [M, channels * height * width], "f32");
  const planes = reshaped(builder, patches, [M, channels, height, width]);
  const convolve = convolver(builder, { spec, tensors });
  const { kernel, step, pool } = spec.stem;
  const stem = convolve(planes, {
    ...{ role: tensors.nameOf("stem"), kernel, step, filters: sizes.stem },
    activation: sizes.activation,
  });
  let x = apply("max_pool", [stem], windowOf(pool.kernel, pool.step), "stem.pool");
  for (const [s, filters] of sizes.widths.entries()) {
    for (let b = 0; b < sizes.depths[s]!; b++) {
      const isFirst = b === 0 && (s > 0 || sizes.firstSteps);
      const step = isFirst ? spec.stages.step : 1;
      x = block(x, { at: { s, b }, filters, step });
    }
  }

  function block(
    read: Value,
    { at, filters, step }: {
      readonly at: { readonly s: number; readonly b: number };
      readonly filters: number;
      readonly step: number;
    },
  ): Value {
    let inner = read;
    for (const { name, kernel, narrowed = 1, steps, activated } of sizes.block) {
      inner = convolve(inner, {
        ...{ role: tensors.nameOf("layer", { ...at, l: name }), kernel, step: steps ? step : 1 },
        filters: filters / narrowed,
        activation: activated ? sizes.activation : "none",
      });
    }
    const isChanged = step > 1 || read.shape[1] !== filters;
    const beside = isChanged
      ? convolve(read, {
        ...{ role: tensors.nameOf("shortcut", at), kernel: 1, step, filters, activation: "none" },
      })
      : read;
    const path = `stages.${at.s}.${at.b}`;
    const sum = apply("binary", [inner, beside], { kind: "add" }, `${path}.sum`);
    return apply("unary", [sum], { kind: sizes.activation }, `${path}.activation`);
  }

  const last = x.shape as [Dim, number, number, number];
  if (rows) builder.output("hidden", reshaped(builder, x, [M, last[1] * last[2] * last[3]]));
  const means = apply("reduce", [x], { kind: "mean", axes: [2, 3], keep: false }, "pool");
  const wanted = builder.input("logit_rows", [L], "i32");
  const vectors = apply("select_rows", [means, wanted], {}, "vectors");
  builder.output("vectors", vectors);
  const classifier = tensors.find(`${spec.tensors.classifier}.weight`);
  if (classifier) {
    const labels = classifier.shape[0]!, name = spec.tensors.classifier;
    const inputs = [
      tensors.get(`${name}.weight`, [labels, last[1]]),
      tensors.get(`${name}.bias`, [labels]),
    ].map((tensor) => builder.weight(tensor.name, tensor));
    builder.output("scores", apply("matmul", [vectors, ...inputs], {}, "scores"));
  }
  const layers = sizes.depths.reduce((sum, depth) => sum + depth, 0);
  return { graph: builder.build(), channels, width: last[1], layers, unused: tensors.unused() };
}

function reshaped(builder: GraphBuilder, x: Value, shape: readonly Dim[]): Value {
  const dims = shape.map((dim) => typeof dim === "number" ? `${dim}` : formatDim(dim));
  return builder.op("reshape", [x], { shape: dims }, `${x.name}.reshaped`)[0]!;
}

/** Half of the kernel around the picture, so that a step of 1 keeps its size. */
function windowOf(kernel: number, step: number) {
  const pad = Math.floor((kernel - 1) / 2);
  return { kernel: [kernel, kernel], strides: [step, step], pads: [pad, pad, pad, pad] };
}

interface Convolution {
  /** Name of its tensors, without their endings. */
  readonly role: string;
  readonly kernel: number;
  readonly step: number;
  readonly filters: number;
  readonly activation: string;
}

/** Convolution, norm and activation: f32[M, C, H, W] → f32[M, filters, …]. */
function convolver(
  builder: GraphBuilder,
  { spec: { parts, normEpsilon: epsilon }, tensors }: {
    readonly spec: ConvSpec;
    readonly tensors: Tensors;
  },
): (x: Value, convolution: Convolution) => Value {
  return (x, { role, kernel, step, filters, activation }) => {
    const of = (part: keyof ConvSpec["parts"]) => tensors.get(role + parts[part], [filters]);
    const shape = [filters, x.shape[1] as number, kernel, kernel];
    const folded = foldNorm(tensors.get(role + parts.weight, shape), {
      ...{ gain: of("gain"), bias: of("bias"), mean: of("mean"), variance: of("variance") },
      epsilon,
    });
    const weights = [folded.weight, folded.bias].map((one) => builder.weight(one.name, one));
    const { kernel: _, ...window } = windowOf(kernel, step);
    return builder.op("conv", [x, ...weights], { ...window, activation }, role)[0]!;
  };
}

/** Tensors by name, and which were asked for. */
class Tensors {
  readonly #file: WeightFile;
  readonly #spec: ConvSpec;
  readonly #prefix: string;
  readonly #used = new Set<string>();

  constructor(file: WeightFile, spec: ConvSpec) {
    this.#file = file;
    this.#spec = spec;
    const { prefixes, tensors, parts } = spec;
    this.#prefix =
      prefixes.find((prefix) =>
        file.tensors.has(tensors.stem.replace("{prefix}", prefix) + parts.weight)
      ) ?? prefixes[0] ?? "";
  }

  nameOf(role: "stem" | "layer" | "shortcut", at: Readonly<Record<string, unknown>> = {}): string {
    return this.#spec.tensors[role].replace(
      /\{(\w+)\}/g,
      (_, key) => key === "prefix" ? this.#prefix : String(at[key]),
    );
  }

  find(name: string): TensorInfo | undefined {
    return this.#file.tensors.get(name);
  }

  get(name: string, shape: readonly number[]): TensorInfo {
    const tensor = this.find(name), at = { file: this.#file.name, place: `tensor ${name}` };
    if (!tensor) throw new FormatError(`is missing: needed with shape [${shape}]`, at);
    this.#used.add(name);
    if (`${tensor.shape}` === `${shape}`) return tensor;
    throw new FormatError(`has shape [${tensor.shape}] where [${shape}] is needed`, {
      ...at,
      remedy: "The file and its config do not belong together",
    });
  }

  unused(): string[] {
    return [...this.#file.tensors.keys()].filter((name) =>
      !this.#used.has(name) && !this.#spec.ignored.some((ending) => name.endsWith(ending))
    );
  }
}

const COUNT = whole("an integer from 1 to 1048576", { least: 1, most: 1 << 20 });

function sizesOf({ metadata, name: file }: WeightFile, spec: ConvSpec): Sizes {
  const valueOf = (key: string): unknown => metadata.get(key) ?? spec.defaults[key];
  const fail = (place: string, message: string): never => {
    throw new FormatError(message, { file, place });
  };
  const read = <T>(key: string, { wanted, accepts }: ValueRule<T>): T => {
    const value = valueOf(key);
    return accepts(value) ? value : fail(key, `must be ${wanted}, and is ${JSON.stringify(value)}`);
  };
  const counts = (key: string): readonly number[] => {
    const list = read(key, LIST) as readonly unknown[];
    if (list.length > 0 && list.every(COUNT.accepts)) return list as readonly number[];
    return fail(key, `must be a list of sizes, and is ${JSON.stringify(list)}`);
  };
  for (const [key, allowed] of Object.entries(spec.expected)) {
    if (isExpected(metadata.get(key), allowed)) continue;
    const stated = JSON.stringify(metadata.get(key));
    throw new UnsupportedError(`is ${stated}, and only ${allowed} is built`, { file, place: key });
  }
  const widths = counts(spec.stages.channels), depths = counts(spec.stages.depths);
  if (widths.length !== depths.length) {
    fail(spec.stages.depths, `lists ${depths.length} stages where there are ${widths.length}`);
  }
  const kind = String(valueOf(spec.block)), activation = String(valueOf(spec.activation));
  if (!Object.hasOwn(spec.blocks, kind)) {
    const known = Object.keys(spec.blocks).join(", ");
    throw new UnsupportedError(`is "${kind}", which is not built: known are ${known}`, {
      ...{ file, place: spec.block },
    });
  }
  if (activation !== "relu") {
    throw new UnsupportedError(`is "${activation}", which is not built: known is relu`, {
      ...{ file, place: spec.activation },
    });
  }
  const block = spec.blocks[kind]!;
  for (const { narrowed = 1 } of block) {
    if (widths.every((width) => width % narrowed === 0)) continue;
    fail(spec.stages.channels, `is ${JSON.stringify(widths)}: must be multiples of ${narrowed}`);
  }
  return {
    ...{ channels: read(spec.channels, COUNT), stem: read(spec.stem.channels, COUNT) },
    ...{ widths, depths, block, activation, firstSteps: valueOf(spec.stages.first) === true },
  };
}
