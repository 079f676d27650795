// Every hyperparameter that specs may speak of, and what its value may be. A new atom that needs a new
// number adds a line here; where files write it is data (specs/names.json and the specs themselves).

import type { MetadataValue } from "../formats/source.ts";

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
  ropeDisabled: { kind: "flag" },
  ropeTruncate: { kind: "flag" },
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
  relativeBuckets: { kind: "count", max: 1 << 16 },
  relativeDistance: { kind: "count", max: 1 << 13 },
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
