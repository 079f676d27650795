// From what a pickle built to named tensors: dicts and lists are walked, keys joined with dots, and each
// view is checked against its storage before anything is read. Parts may be shared, so a few bytes can
// describe a graph with 2^40 paths; steps and depth are counted.

import { FormatError } from "../../errors.ts";
import type { MetadataValue } from "../source.ts";
import { COUNT } from "../../record.ts";
import { asKind, describeValue, type PickleValue, type TorchStorage } from "./values.ts";

/** A view of a storage, checked. */
export interface TensorView {
  readonly name: string;
  readonly storage: TorchStorage;
  /** First element, counted from the start of the stored bytes. */
  readonly offset: number;
  readonly shape: readonly number[];
  /** Elements between neighbours of each dimension. */
  readonly strides: readonly number[];
  /** Elements of the view. */
  readonly count: number;
}

/** Everything in a checkpoint that has a name. */
export interface CheckpointParts {
  readonly views: readonly TensorView[];
  /** Numbers, texts and flags by name. */
  readonly metadata: ReadonlyMap<string, MetadataValue>;
}

const MAX_DEPTH = 64;
const MAX_NAME = 1024;
/** torch's own limit. */
const MAX_RANK = 64;

interface Walk {
  readonly file: string;
  readonly fileBytes: number;
  readonly views: TensorView[];
  readonly metadata: Map<string, MetadataValue>;
  readonly names: Set<string>;
  stepsLeft: number;
}

/**
 * Names and checks the tensors of a checkpoint.
 *
 * @param pickleBytes Length of the pickle; an honest walk takes fewer steps.
 * @param fileBytes Length of the file; no tensor may be larger.
 * @throws {FormatError} If a tensor leaves its storage, a name stands twice, or the parts are tangled.
 */
export function collectTensors(
  root: PickleValue,
  { file, pickleBytes, fileBytes }: { file: string; pickleBytes: number; fileBytes: number },
): CheckpointParts {
  const walk: Walk = {
    file,
    fileBytes,
    views: [],
    metadata: new Map(),
    names: new Set(),
    stepsLeft: 1000 + 2 * pickleBytes,
  };
  visit(walk, { value: root, name: "", depth: 0 });
  return { views: walk.views, metadata: walk.metadata };
}

function visit(
  walk: Walk,
  { value, name, depth }: {
    readonly value: PickleValue;
    readonly name: string;
    readonly depth: number;
  },
): void {
  if (--walk.stepsLeft < 0) throw broken(walk, "", "its parts are shared more than any model's");
  if (depth > MAX_DEPTH) throw broken(walk, "", `its containers nest deeper than ${MAX_DEPTH}`);
  if (name.length > MAX_NAME) throw broken(walk, "", `a name has over ${MAX_NAME} characters`);
  const entries = asKind(value, "dict")?.entries;
  if (entries !== undefined) {
    for (const [key, item] of entries) {
      visit(walk, { value: item, name: joinName(walk, name, key), depth: depth + 1 });
    }
    return;
  }
  const items = asKind(value, "list")?.items ?? asKind(value, "tuple")?.items;
  if (items !== undefined) {
    items.forEach((item, i) =>
      visit(walk, { value: item, name: joinName(walk, name, i), depth: depth + 1 })
    );
    return;
  }
  const tensor = asKind(value, "tensor");
  const isPlain = value === null || typeof value !== "object";
  if (!tensor && !isPlain) return;
  if (walk.names.has(name)) throw broken(walk, name, "two values have this name");
  walk.names.add(name);
  if (isPlain) walk.metadata.set(name, value);
  else if (tensor) walk.views.push(checkView(walk, name, tensor));
}

function joinName(walk: Walk, parent: string, key: PickleValue): string {
  const isName = typeof key === "string" || typeof key === "number" || typeof key === "boolean" ||
    typeof key === "bigint";
  if (!isName) throw broken(walk, parent, `${describeValue(key)} as a key is no name`);
  return parent === "" ? String(key) : `${parent}.${key}`;
}

function checkView(
  walk: Walk,
  name: string,
  { storage, offset, size, stride }: {
    storage: TorchStorage;
    offset: PickleValue;
    size: PickleValue;
    stride: PickleValue;
  },
): TensorView {
  if (name === "") throw broken(walk, name, "is a tensor without a name");
  const shape = counts(walk, { name, value: size, what: "sizes" });
  const strides = counts(walk, { name, value: stride, what: "strides" });
  if (shape.length !== strides.length || shape.length > MAX_RANK) {
    throw broken(walk, name, `has ${shape.length} sizes and ${strides.length} strides`);
  }
  if (!COUNT.accepts(offset)) {
    throw broken(walk, name, `begins at element ${describeValue(offset)}`);
  }
  const count = shape.reduce((product, dim) => product * dim, 1);
  // Doubles beyond 2^53 are inexact but still beyond any file.
  const last = shape.reduce((sum, dim, i) => sum + (dim - 1) * strides[i], offset);
  if (count > 0 && last >= storage.elements) {
    throw broken(
      walk,
      name,
      `reaches element ${last} of storage ${showKey(storage.key)}, which has ${storage.elements}`,
    );
  }
  if (count * storage.width > walk.fileBytes) {
    throw broken(
      walk,
      name,
      `of shape [${shape}] takes ${count * storage.width} bytes, the file has ${walk.fileBytes}`,
    );
  }
  return { name, storage, offset: storage.first + offset, shape, strides, count };
}

function counts(
  walk: Walk,
  { name, value, what }: {
    readonly name: string;
    readonly value: PickleValue;
    readonly what: string;
  },
): readonly number[] {
  const items = asKind(value, "tuple")?.items ?? asKind(value, "list")?.items;
  if (items?.every(COUNT.accepts)) return items;
  throw broken(walk, name, `its ${what} are no list of sizes`);
}

/** A key as text for messages. */
export function showKey(key: string): string {
  return JSON.stringify(key.length > 80 ? key.slice(0, 80) + "…" : key);
}

function broken({ file }: Walk, name: string, message: string): FormatError {
  return new FormatError(message, {
    file,
    place: name === "" ? undefined : `tensor ${showKey(name)}`,
    remedy: "The checkpoint is damaged: fetch it again",
  });
}
