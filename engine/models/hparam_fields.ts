// Every hyperparameter that specs may speak of, and what its value may be. A new atom that needs a new
// number adds a line here; where files write it is data (specs/names.json and the specs themselves).

import { FormatError, UnsupportedError } from "../errors.ts";
import type { MetadataValue } from "../formats/source.ts";
import { FLAG, listOf, OBJECT, TEXT, type ValueRule, valueRule, whole } from "../record.ts";

/**
 * - `count`: whole, at least 1; `index`: whole, at least 0. Their upper bound stops nonsense early.
 * - `positive`: above 0
 * - `words`: a list of strings; numbers and flags in it are taken as they are written. `indices`: of whole numbers
 */
export type FieldKind =
  | "count"
  | "index"
  | "positive"
  | "flag"
  | "word"
  | "words"
  | "indices"
  | "record";

/** What each hyperparameter is; `none` is what a file means that says null, where that is a value. */
export const FIELDS = {
  layers: { kind: "count", max: 10_000 },
  blocks: { kind: "count", max: 10_000 },
  nextLayers: { kind: "index", max: 10_000 },
  hidden: { kind: "count", max: 1 << 20 },
  heads: { kind: "count", max: 1 << 16 },
  kvHeads: { kind: "count", max: 1 << 16 },
  headDim: { kind: "count", max: 1 << 16 },
  valueDim: { kind: "count", max: 1 << 16 },
  feedForward: { kind: "count", max: 1 << 22 },
  vocabulary: { kind: "count", max: 1 << 26 },
  context: { kind: "count", max: 2 ** 31 },
  normEpsilon: { kind: "positive", max: 1 },
  activation: { kind: "word" },
  tiedHead: { kind: "flag" },
  headScaled: { kind: "flag" },
  ropeTheta: { kind: "positive", max: 1e15 },
  ropeDim: { kind: "count", max: 1 << 16 },
  ropeFraction: { kind: "positive", max: 1 },
  ropeScaling: { kind: "record" },
  ropeLinearFactor: { kind: "positive", max: 1e9 },
  localRopeTheta: { kind: "positive", max: 1e15 },
  localRopeScaling: { kind: "record" },
  window: { kind: "index", max: 2 ** 31, none: 0 },
  windowPeriod: { kind: "count", max: 10_000 },
  windowEnabled: { kind: "flag" },
  windowStart: { kind: "index", max: 10_000 },
  layerTypes: { kind: "words" },
  queryScalar: { kind: "positive", max: 1e9 },
  attentionScale: { kind: "positive", max: 1e9 },
  scoreCap: { kind: "positive", max: 1e9 },
  logitCap: { kind: "positive", max: 1e9 },
  embeddingDim: { kind: "count", max: 1 << 20 },
  embeddingScale: { kind: "positive", max: 1e9 },
  residualScale: { kind: "positive", max: 1e9 },
  logitScale: { kind: "positive", max: 1e9 },
  logitBase: { kind: "count", max: 1 << 20 },
  ropeRatio: { kind: "positive", max: 1e9 },
  ropeInterleaved: { kind: "flag" },
  ropeOriginal: { kind: "count", max: 2 ** 31 },
  ropeTruncate: { kind: "flag" },
  ropeSections: { kind: "indices" },
  ropePeriod: { kind: "count", max: 10_000 },
  positionLimit: { kind: "count", max: 2 ** 31 },
  alibi: { kind: "flag" },
  parallel: { kind: "flag" },
  headNorms: { kind: "flag" },
  multiQuery: { kind: "flag" },
  newDecoder: { kind: "flag" },
  parallelNorms: { kind: "index", max: 2 },
  normBefore: { kind: "flag" },
  queryRank: { kind: "count", max: 1 << 20 },
  keyRank: { kind: "count", max: 1 << 20 },
  plainDim: { kind: "count", max: 1 << 16 },
  experts: { kind: "index", max: 1 << 16 },
  expertsUsed: { kind: "index", max: 1 << 10 },
  expertGroups: { kind: "index", max: 1 << 16 },
  expertGroupsUsed: { kind: "index", max: 1 << 16 },
  expertFeedForward: { kind: "count", max: 1 << 22 },
  expertNormalize: { kind: "flag" },
  expertScale: { kind: "positive", max: 1e9 },
  expertMethod: { kind: "word" },
  expertGating: { kind: "index", max: 16 },
  sharedExperts: { kind: "index", max: 1 << 10 },
  sharedFeedForward: { kind: "count", max: 1 << 22 },
  denseLayers: { kind: "index", max: 10_000 },
  denseOnly: { kind: "indices" },
  sparsePeriod: { kind: "count", max: 10_000 },
  gluLimit: { kind: "positive", max: 1e9 },
  gluAlpha: { kind: "positive", max: 1e9 },
  tokenTypes: { kind: "count", max: 1 << 16 },
  tokenizerKind: { kind: "word" },
  encoderLayers: { kind: "count", max: 10_000 },
  encoderHeads: { kind: "count", max: 1 << 16 },
  encoderFeedForward: { kind: "count", max: 1 << 22 },
  targetStart: { kind: "index", max: 1 << 26 },
  sourceContext: { kind: "count", max: 1 << 16 },
  melBands: { kind: "count", max: 1 << 10 },
  relativeBuckets: { kind: "count", max: 1 << 16 },
  relativeDistance: { kind: "count", max: 1 << 13 },
  imageSize: { kind: "count", max: 1 << 14 },
  frames: { kind: "count", max: 1 << 10 },
  fullLayers: { kind: "indices" },
  patchSize: { kind: "count", max: 1 << 10 },
  channels: { kind: "count", max: 1 << 10 },
  feedForwardRatio: { kind: "count", max: 1 << 10 },
  gatedFeedForward: { kind: "flag" },
} as const satisfies Record<string, { kind: FieldKind; max?: number; none?: number }>;

/** Names that specs may use. */
export const HYPERPARAMETERS: readonly string[] = Object.keys(FIELDS);

/** Name of a hyperparameter. */
export type FieldName = keyof typeof FIELDS;
type FieldValue<K> = K extends "count" | "positive" | "index" ? number
  : K extends "flag" ? boolean
  : K extends "word" ? string
  : K extends "words" ? readonly string[]
  : K extends "indices" ? readonly number[]
  : Readonly<Record<string, MetadataValue>>;

/** Values as found; what a file does not say is absent. */
export type FoundHyperparameters = {
  readonly [K in FieldName]?: FieldValue<typeof FIELDS[K]["kind"]>;
};

/**
 * A value of a file or a spec, as its field takes it.
 *
 * @throws {FormatError} Naming the place, what is allowed and what it is.
 * @throws {UnsupportedError} For values per layer that differ.
 */
export function checkField(
  name: FieldName,
  raw: MetadataValue,
  at: { file: string; place: string },
): unknown {
  const { kind, max = Infinity } = FIELDS[name] as { kind: FieldKind; max?: number };
  const value = unwrap(raw, kind, at);
  const { wanted, accepts } = KINDS[kind](max);
  if (!accepts(value)) throw new FormatError(`must be ${wanted}, and is ${describe(value)}`, at);
  return kind === "words" ? (value as unknown[]).map(String) : value;
}

const bounded = (least: number) => (most: number): ValueRule =>
  whole(`an integer from ${least} to ${most}`, { least, most });

/** What a value of each kind must be, by its upper bound. */
const KINDS: Readonly<Record<FieldKind, (max: number) => ValueRule>> = {
  count: bounded(1),
  index: bounded(0),
  positive: (max) =>
    valueRule(
      `a number above 0, at most ${max}`,
      (value) => typeof value === "number" && value > 0 && value <= max,
    ),
  flag: () => FLAG,
  word: () => TEXT,
  words: () =>
    listOf(
      valueRule("", (item) => ["string", "number", "boolean"].includes(typeof item)),
      "a list of strings",
    ),
  indices: () => listOf(whole(""), "a list of whole numbers"),
  record: () => OBJECT,
};

// Some writers store one value per layer; where all are equal they mean the plain number.
function unwrap(value: MetadataValue, kind: string, at: { file: string; place: string }): unknown {
  // Lists of numbers come from GGUF as typed arrays.
  if (kind === "indices" && ArrayBuffer.isView(value)) return Array.from(value as Int32Array);
  if (!isList(value) || kind === "words" || kind === "indices") return value;
  const items = Array.from(value as ArrayLike<unknown>);
  if (items.length > 0 && items.every((item) => item === items[0])) return items[0];
  throw new UnsupportedError(
    `has a value per layer (${describe(items)}), and layers of different sizes are not built`,
    at,
  );
}

/** A value in a message. */
export function describe(value: unknown): string {
  const text = typeof value === "bigint"
    ? `${value}`
    : typeof value === "number"
    ? `number ${value}`
    : `${typeof value} ${JSON.stringify(value) ?? ""}`;
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/** Whether a value is a list of any kind. */
export function isList(value: unknown): boolean {
  return Array.isArray(value) || ArrayBuffer.isView(value);
}
