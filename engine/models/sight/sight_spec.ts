// What a model that sees is made of besides its language model: data, like every architecture. A spec of sight says where
// in a config and in a file's tensors the language model and the encoder of pictures stand (the tower, whose own spec it
// names), what makes rows of the language model of the tower's (the connector, steps in order), what these rows see, and
// what stands for a picture in a prompt. To add one: a JSON file in specs/ and a line in specs/mod.ts.

import {
  anything,
  either,
  flag,
  list,
  number,
  oneOf,
  optional,
  record,
  type Rule,
  table,
  text,
} from "../check.ts";
import { expectedRule, tensorRules } from "../spec_rules.ts";

/** A value of the config, and what counts where it is not there. */
const keyed = record({
  key: optional(text),
  default: either(number, { second: text, wanted: "a number or a string" }),
});

const section = record({
  /** Key of the section of the config; where it is not there, the config itself is meant. */
  section: optional(text),
  /** Type of the spec by which it is built; for the language model, where its section states none. */
  type: text,
  /** Stated types that other specs are called by. */
  types: optional(table(text)),
  /** What a config leaves out. */
  defaults: optional(table(anything)),
  /** Beginnings of its tensors' names, and what its own spec calls them. */
  prefixes: table(text),
});

const step = record({
  /**
   * Rows f32[R, width] to rows:
   * - `mean`, `join`: each square of patches becomes their mean, or all of them side by side
   * - `norm`: of a kind, with the weight of a role
   * - `linear`: by the matrix of a role
   * - `activation`: by a key of the config
   */
  step: oneOf("mean", "join", "norm", "linear", "activation"),
  role: optional(text),
  kind: optional(oneOf("rms", "layer")),
  /** The norm's weight in use is `base` + the stored one. */
  base: optional(number),
  bias: optional(oneOf("none", "present", "required")),
  key: optional(text),
  default: optional(text),
});

/** The rules of a spec of sight. */
export const sightRule = record({
  name: text,
  /** Values of `model_type`. */
  matches: list(text),
  text: section,
  tower: record({
    section: optional(text),
    type: text,
    defaults: optional(table(anything)),
    prefixes: table(text),
    /** The state behind which of its layers is read, -1 the last; absent: the last with its norm. */
    after: optional(keyed),
    /** Values that keys of the config must have, if they are there. */
    expected: optional(expectedRule),
  }),
  connector: record({
    /** Edge of a square of patches that becomes a row; default 1. */
    side: optional(keyed),
    /** The same by the rows that a picture becomes. */
    rows: optional(keyed),
    steps: list(step),
    tensors: tensorRules,
  }),
  /** A row sees all of its picture. */
  seesWhole: optional(flag),
  /** Rows are rotated by their place in the picture. */
  byPlace: optional(flag),
  /** Tower and projector in a file of GGUF beside the language model (mmproj.ts). */
  gguf: optional(record({
    /** Values of `clip.projector_type`. */
    projectors: list(text),
    /** Beginnings of names, besides those of all towers. */
    names: optional(table(text)),
    /** Keys of the config and where the file has them, besides those of all towers. */
    config: optional(table(text)),
    /** Keys whose values are the indices of each n-th layer, the n being a key of the file; 0: of all layers. */
    every: optional(table(text)),
    /** What preprocessor_config.json would say; texts that begin with `clip.` are keys of the file. */
    processor: table(anything),
    /** What the converter changed: merged over the rest. */
    use: optional(table(anything)),
  })),
  marks: record({
    /** What a chat template writes where a picture stands. */
    placeholder: text,
    /** The token of a row. */
    row: text,
    /** What the placeholder becomes; `{rows}` is that token as often as there are rows. */
    whole: text,
    /** The same of a tile, of the end of a line of tiles, and of the whole behind them. */
    tile: optional(text),
    tileLineEnd: optional(text),
    behindTiles: optional(text),
  }),
});

/** A spec of sight, checked. */
export type SightSpec = typeof sightRule extends Rule<infer T> ? T : never;
