// Finds a model's tensors by role ("query" of layer 3) under the names of its container, checks their
// shapes, and remembers what was asked for, so that what nobody asked for can be named at the end: a
// forgotten tensor is the commonest way to a model that loads and speaks nonsense. Where a file stores a
// role inside another tensor (fused projections), turned, or in many tensors (experts), the spec says
// how, and the tensor handed out is a view of it (derived_tensors/). Where writers differ, the spec lists the places in
// order. The bias of a role is named like its weight unless the spec names it.

import { FormatError, UnsupportedError } from "../errors.ts";
import { scalars } from "../formats/scalars.ts";
import type { TensorInfo, WeightFile } from "../formats/source.ts";
import { sourceOfSize } from "./size_source.ts";
import { sizeOf } from "./sizes.ts";
import type { Names, TensorRule, TensorRules } from "./spec.ts";
import { joinMxfp4 } from "./derived_tensors/mxfp4.ts";
import { type Part, sliceTensor } from "../formats/tensor_slice.ts";
import { stackTensors } from "./derived_tensors/stack.ts";
import { transposeTensor } from "./derived_tensors/transpose.ts";

/** Tensors by role. */
export interface TensorLookup {
  /**
   * The tensor of a role.
   *
   * @param layer Layer index, for roles that each layer has.
   * @throws {FormatError} If it is absent or has another shape than `shape`.
   */
  get(role: string, shape: readonly number[], layer?: number): TensorInfo;
  /** The same, or undefined where the file has no such tensor. */
  find(role: string, shape: readonly number[], layer?: number): TensorInfo | undefined;
  /** Whether the file has it. */
  has(role: string, layer?: number): boolean;
  /** Where a role lies in the file; undefined where the file has no such tensor. */
  stored(role: string, layer?: number): StoredRole | undefined;
  /** First dimension of a role's tensor, for sizes that are written nowhere else. */
  rows(role: string): number | undefined;
  /** Names of tensors that nothing asked for and that are not known to be needless. */
  unused(): string[];
}

/** A tensor of the file that holds a role, or part of it; several of a role that is stacked. */
export interface StoredRole {
  readonly tensors: readonly TensorInfo[];
  readonly rule: TensorRule;
}

/**
 * A lookup over one model file.
 *
 * @param params Hyperparameters, for sizes that rules of tensors speak of.
 */
export function createTensorLookup(
  file: WeightFile,
  { names, params = {} }: { readonly names: Names; readonly params?: object | undefined },
): TensorLookup {
  const used = new Set<string>();
  const views = new Map<string, TensorInfo>();
  const prefix = names.prefixes.find((candidate) =>
    placesOf(names.tensors.embedding)
      .some((rule) => file.tensors.has(nameOf(rule, { prefix: candidate })))
  ) ?? names.prefixes[0] ?? "";

  /** Where a role is; where it would be first if it is nowhere. */
  function ruleOf(role: string, layer: number | undefined): TensorRule | undefined {
    if (!Object.hasOwn(names.tensors, role)) {
      const weight = role.endsWith(BIAS) ? ruleOf(role.slice(0, -BIAS.length), layer) : undefined;
      return weight === undefined ? undefined : biasRule(weight);
    }
    const places = placesOf(names.tensors[role]);
    const isThere = (rule: TensorRule) => namesOf(rule, role, layer).every(isStored);
    return places.length === 1 ? places[0] : places.find(isThere) ?? places[0];
  }

  const isStored = (name: string) => file.tensors.has(name);

  function namesOf(rule: TensorRule, role: string, layer: number | undefined): string[] {
    if (typeof rule === "string" || rule.stack === undefined) {
      const exponents = typeof rule === "string" ? undefined : rule.exponents;
      return [rule, ...exponents === undefined ? [] : [exponents]]
        .map((one) => nameOf(one, { prefix, layer }));
    }
    const count = sizeOf(rule.stack, { params, place: role });
    return Array.from({ length: count }, (_, expert) => nameOf(rule, { prefix, layer, expert }));
  }

  function storedNames(role: string, layer: number | undefined): string[] {
    const rule = ruleOf(role, layer);
    return rule === undefined ? [] : namesOf(rule, role, layer);
  }

  function view(role: string, layer: number | undefined): TensorInfo | undefined {
    const key = `${role} ${layer}`;
    const known = views.get(key);
    if (known) return known;
    const own = storedNames(role, layer), stored = own.map((name) => file.tensors.get(name));
    const tensors = stored.filter((tensor) => tensor !== undefined);
    // Of experts that are stored one by one, all or none must be there.
    if (tensors.length === 0 || tensors.length < stored.length) return undefined;
    // By the names of the lookup: a view of a file may call tensors otherwise than the file.
    for (const name of own) used.add(name);
    const made = applyRule(ruleOf(role, layer)!, tensors, params);
    checkNumbers(file, made);
    views.set(key, made);
    return made;
  }

  function find(role: string, shape: readonly number[], layer?: number): TensorInfo | undefined {
    const tensor = view(role, layer);
    if (!tensor) return undefined;
    if (!equalShapes(tensor.shape, shape)) {
      // Some writers drop leading dims of 1.
      if (equalShapes(tensor.shape, shape.slice(shape.findIndex((dim) => dim !== 1)))) {
        return { ...tensor, shape };
      }
      const axis = shape.findIndex((dim, i) => dim !== tensor.shape[i]);
      const source = axis < 0
        ? undefined
        : sourceOfSize({ size: shape[axis]!, axis }, { file, names, params, role });
      const because = source ? `, since ${source}` : "";
      throw new FormatError(`has shape [${tensor.shape}] where [${shape}] is needed${because}`, {
        file: file.name,
        place: `tensor ${tensor.name}`,
        remedy: "The file and its hyperparameters do not belong together",
      });
    }
    return tensor;
  }

  return {
    find,
    get(role, shape, layer) {
      const tensor = find(role, shape, layer);
      if (tensor) return tensor;
      const missing = storedNames(role, layer).find((name) => !file.tensors.has(name));
      throw new FormatError(
        `is missing: needed as ${role.replaceAll("_", " ")} with shape [${shape}]`,
        { file: file.name, place: `tensor ${missing ?? role}` },
      );
    },
    has(role, layer) {
      const stored = storedNames(role, layer);
      return stored.length > 0 && stored.every(isStored);
    },
    stored(role, layer) {
      const tensors = storedNames(role, layer).map((name) => file.tensors.get(name))
        .filter((tensor) => tensor !== undefined);
      return tensors.length === 0 ? undefined : { tensors, rule: ruleOf(role, layer)! };
    },
    rows: (role) => file.tensors.get(storedNames(role, undefined)[0] ?? "")?.shape[0],
    unused: () =>
      [...file.tensors.keys()].filter((name) =>
        !used.has(name) && !names.ignored.some((part) => isPart(part, name))
      ),
  };
}

/** Whether a name ends so, or begins so where a part ends with a dot. */
function isPart(part: string, name: string): boolean {
  return part.endsWith(".") ? name.startsWith(part) : name.endsWith(part);
}

function equalShapes(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((dim, i) => dim === b[i]);
}

/** What writers call the scales of a tensor, behind its name or in place of `weight`. */
const SCALES = [/$/, /\bweight$/].flatMap((end) =>
  ["_scale", "_scale_inv", "weight_scale", "weight_scale_inv", "scale_weight", "scale", "scales"]
    .map((name) => (tensor: string) => tensor.replace(end, name))
);

/**
 * Weights are floats, or codes whose format says what they stand for.
 *
 * @throws {UnsupportedError} For codes that lack their scales, or whose scales have no known rule.
 */
function checkNumbers(file: WeightFile, { name, format }: TensorInfo): void {
  const remedy = "Use a checkpoint in F32, F16 or BF16, or the model's GGUF file";
  const at = { file: file.name, place: `tensor ${name}`, remedy };
  if (scalars.has(format) && format !== "F64") {
    throw new UnsupportedError(`holds ${format}, which is no format of weights`, at);
  }
  if (!format.startsWith("F8_")) return;
  const scales = SCALES.map((nameOf) => nameOf(name))
    .find((other) => other !== name && file.tensors.has(other));
  if (scales === undefined) return;
  throw new UnsupportedError(`holds ${format} with scales in ${scales}, which is not built`, at);
}

const BIAS = "_bias";

function placesOf(rules: TensorRules | undefined): readonly TensorRule[] {
  return rules === undefined ? [] : [rules].flat() as TensorRule[];
}

function biasRule(weight: TensorRule): TensorRule {
  const named = (name: string) => name.replace(/\bweight$/, "bias");
  if (typeof weight === "string") return named(weight);
  const { name, transposed: _turned, exponents: _codes, ...rest } = weight;
  return { name: named(name), ...rest };
}

function nameOf(
  rule: TensorRule,
  { prefix, layer, expert }: { prefix: string; layer?: number | undefined; expert?: number },
): string {
  const template = typeof rule === "string" ? rule : rule.name;
  return template.replace("{prefix}", prefix).replace("{i}", String(layer))
    .replace("{j}", String(expert));
}

/** The part of an axis that a rule takes, in numbers. */
export function partOf(
  { start = 0, count, groups = 1, stride }: NonNullable<RowsRule>,
  { params, name }: { readonly params: object; readonly name: string },
): Omit<Part, "axis"> {
  const value = (size: number | string) => sizeOf(size, { params, place: name });
  return { start: value(start), count: value(count), groups: value(groups), stride: value(stride) };
}

type RowsRule = Exclude<TensorRule, string>["rows"];

function applyRule(rule: TensorRule, tensors: readonly TensorInfo[], params: object): TensorInfo {
  if (typeof rule === "string") return tensors[0]!;
  const { name, exponents, stack, transposed, axis = 0, rows, matrices } = rule;
  let tensor = exponents !== undefined
    ? joinMxfp4(tensors[0]!, tensors[1]!)
    : stack === undefined
    ? tensors[0]!
    : stackTensors(tensors);
  if (transposed && matrices === undefined) tensor = transposeTensor(tensor);
  if (rows) tensor = sliceTensor(tensor, { axis, ...partOf(rows, { params, name }) });
  if (matrices === undefined) return tensor;
  const count = sizeOf(matrices, { params, place: name }), [all, ...rest] = tensor.shape;
  tensor = { ...tensor, shape: [count, all! / count, ...rest] };
  return transposed ? transposeTensor(tensor) : tensor;
}
