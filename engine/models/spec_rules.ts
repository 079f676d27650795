// The format of a spec file as rules: which atoms there are and what each may be; spec_reads.ts says which go together. An atom is a word or a
// number in a JSON file; what it does is in blocks/. Sizes that depend on the model are expressions of
// hyperparameters ("heads // kvHeads * headDim"), factors are powers of them ({ "layers": -0.5 }).

import {
  anything,
  either,
  flag,
  list,
  number,
  oneOf,
  oneOrMore,
  optional,
  record,
  type Rule,
  table,
  text,
  textOr,
} from "./check.ts";
import { ACTIVATION_NAMES } from "../ops/activations.ts";

// A plain value of a config file.
const scalar: Rule<number | boolean | string> = either(
  number,
  { second: either(flag, { second: text, wanted: "" }), wanted: "a number, flag or string" },
);

const size = either(number, {
  second: text,
  wanted: "a number or an expression of hyperparameters",
});

/** A number, or a product of powers of hyperparameters. */
const factor = either(number, {
  second: table(number),
  wanted: "a number or powers of hyperparameters",
});

const bias = oneOf("none", "present", "required");

const pattern = record({
  /**
   * - `uniform`: every layer is `kind`
   * - `every`: each `period`-th layer is `kind`, the rest `others`
   * - `from`: layers from `start` on are `kind` if the flag `when` is set, the rest `others`
   * - `listed`: layers whose indices the hyperparameter `layers` lists are `kind`, the rest `others`
   */
  rule: oneOf("uniform", "every", "from", "listed"),
  kind: text,
  others: optional(text),
  period: optional(text),
  when: optional(text),
  start: optional(text),
  layers: optional(text),
});

const attentionKind = record({
  /** Hyperparameter that holds the base of the rotary angles; absent: no rotation. */
  theta: optional(text),
  /** Hyperparameter that holds the rule that changes the frequencies. */
  scaling: optional(text),
  /**
   * Hyperparameter that holds how many positions are seen; absent: all. Of pictures: the edge of the squares, in pixels,
   * into which they are cut, a patch seeing those of its own.
   */
  window: optional(text),
  /**
   * A score falls in proportion to the distance of its key, each head at its own rate: added to the
   * `scaled` scores, or to the `raw` ones before they are scaled.
   */
  alibi: optional(oneOf("scaled", "raw")),
});

const attention = record({
  /**
   * - `heads` (default): projections of query, key and value
   * - `latent`: keys and values are made of one narrow row a token, and only that is kept
   */
  kind: optional(oneOf("heads", "latent")),
  /** Rows of an encoder see what stands before them alone; elsewhere its rows see their whole sequence. */
  causal: optional(flag),
  /** Bias of the query, key and value projections; `keyBias` where keys have another rule. */
  bias,
  keyBias: optional(bias),
  outputBias: bias,
  /**
   * Norm of query and key before the rotation: over each head with one weight for all of them (`head`) or one of
   * its own for each (`per_head`), or over all heads together.
   */
  headNorm: optional(oneOf("head", "per_head", "full")),
  /** A learnt score a head that takes part in the softmax and has no value. */
  sinks: optional(flag),
  ropeStyle: optional(oneOf("half", "interleaved")),
  /** Of pictures: half of the channels of a head are rotated by a patch's row, the others by its column. */
  ropeByPlace: optional(flag),
  /** Scores grow with the temperature that the scaling rule of the rotation asks for. */
  ropeTemperature: optional(flag),
  /** A learnt summand for each head and class of distances, one table for all layers of a stack (T5). */
  relativeBias: optional(flag),
  kinds: table(attentionKind),
  /** Kind by the name that a file's list of layer types uses. */
  types: optional(table(text)),
  pattern,
});

const router = record({
  /** From logits to scores. */
  score: oneOf("softmax", "sigmoid"),
  bias,
  /** A learnt summand that takes part in choosing, not in weighing. */
  correction: optional(flag),
  /** How a group of experts is judged: by its best, or by the sum of its best two. */
  groupScore: optional(oneOf("best", "best_two")),
});

const feedForward = record({
  /**
   * - `gated`: down(act(gate x) · up x)
   * - `plain`: down(act(up x))
   * - `mixture`: a router chooses experts, each `gated`; layers that have none (denseLayers, denseOnly,
   *   sparsePeriod) are `gated` blocks
   */
  kind: oneOf("gated", "plain", "mixture"),
  activation: optional(oneOf(...ACTIVATION_NAMES)),
  /** Gate and up are bounded and up is moved by 1 (hyperparameters gluLimit, gluAlpha). */
  clamped: optional(flag),
  bias,
  router: optional(router),
  /** An expert that all tokens go to; `gated`: weighed by a sigmoid of its own. */
  shared: optional(record({ inner: text, gated: flag })),
});

const branch = record({
  /** `cross`: attention to what the encoder made of the source. */
  block: oneOf("attention", "cross", "feedForward"),
  /** Norm of what the block reads; absent: none. */
  before: optional(text),
  /** Norm of what the block gives. */
  after: optional(text),
  /** Learnt factors, one a channel, on what the block gives. */
  scale: optional(text),
  /** Norm of the sum of stream and branch. */
  sum: optional(text),
  /** The block reads the stream as it is now (default), or as it was before the layer. */
  from: optional(oneOf("stream", "layer")),
});

const patches = record({
  /** Bias of the projection of a patch's numbers. */
  bias,
  /** Roles of learnt rows in front of the patches of a picture; the first may be pooled. */
  leading: optional(list(text)),
  /**
   * A learnt row for each place of the picture, and for the first `leading` of those rows, is added. Where a picture has
   * another grid of patches than the table, it is resized as torch does it, or else refused.
   */
  positions: optional(record({
    leading: number,
    resized: optional(oneOf("bicubic", "bicubic_antialias")),
  })),
});

const pool = record({
  /**
   * - `first`, `last`: that row; `end`: the first row whose token ends the text
   * - `first_and_mean`: the first row, and behind it the mean of the patches
   * - `attention`: a learnt query looks at all patches, and a feed-forward block follows (SigLIP)
   */
  rows: oneOf("first", "last", "end", "first_and_mean", "attention"),
  /** The pooled row is projected (role `projection`), with such a bias, if the file has the matrix. */
  projection: optional(bias),
  /** Texts are filled up to the longest with this token, which is seen as any other (SigLIP). */
  padded: optional(number),
});

const rows = record({
  start: optional(size),
  count: size,
  groups: optional(size),
  /** Entries of a group; all groups together fill the axis. */
  stride: size,
});

// Steps are taken in this order, whatever the order in the file.
const tensorRecord = record({
  /** `{prefix}`, `{i}` the layer, `{j}` the expert. */
  name: text,
  /** The tensor of exponents, where that of `name` holds codes of MXFP4; together they are the stored tensor. */
  exponents: optional(text),
  /** How many tensors `{j}` stands for; they are stacked. */
  stack: optional(size),
  /** Stored as [in, out]; of a tensor that is cut into `matrices`, each of them is turned instead. */
  transposed: optional(flag),
  /** The axis that `rows` cuts; 0 unless given. */
  axis: optional(number),
  rows: optional(rows),
  /** Rows are those of this many matrices, one behind the other. */
  matrices: optional(size),
});

/** Where a tensor is: its name, or its name and how it lies there. */
export type TensorRule = string | ReturnType<typeof tensorRecord>;

/** Where it may be: the first place counts whose tensors the file has. */
export type TensorRules = TensorRule | readonly TensorRule[];

/** Tensor names by role. */
export const tensorRules: Rule<Readonly<Record<string, TensorRules>>> = table(
  oneOrMore(textOr(tensorRecord)),
);

/**
 * Values that keys of a file must have, if they are there: what else they could ask for is not built. "any"
 * lifts what the common names demand.
 */
export const expectedRule: Rule<Readonly<Record<string, ExpectedValues>>> = table(
  textOr(list(scalar), "any") as Rule<ExpectedValues>,
);

/** Allowed values of a key. */
export type ExpectedValues = "any" | readonly (number | boolean | string)[];

const names = record({
  /** Endings of tensor names in older files, and what they are called here. */
  renamed: optional(table(text)),
  hyperparameters: optional(table(list(text))),
  expected: optional(expectedRule),
  prefixes: optional(list(text)),
  tensors: optional(tensorRules),
  ignored: optional(list(text)),
  /** Keys that change no result, by the reason; `*` stands for any part. */
  harmless: optional(table(list(text))),
});

/**
 * What stands in an encoder of sound where others have an embedding: log-mel features (`melBands` a frame) go through
 * convolutions over time, then a learnt row for each of `sourceContext` positions is added. A window of sound has always
 * the same length.
 */
const sound = record({
  /** Roles `convolution.0`, `convolution.1`, …: odd kernels, padded so that a stride of 1 keeps the length. */
  convolutions: list(record({ kernel: number, stride: number })),
  /** Behind each of them. */
  activation: oneOf(...ACTIVATION_NAMES),
});

/** The rules of a spec file without `containers`. */
export const specRule = record({
  name: text,
  /**
   * - `decoder` (default): tokens in, the next token out
   * - `encoder`: every token sees the whole sequence
   * - `encoder-decoder`: an encoder reads the source once, a decoder writes and sees its result
   * - `picture`: an encoder of the patches of pictures
   */
  network: optional(oneOf("decoder", "encoder", "encoder-decoder", "picture")),
  /** The part of config.json that speaks of this network, where the file holds several. */
  section: optional(text),
  /**
   * The encoder of pictures in the same file: what of config.json speaks of it, and its `model_type` where that part
   * names none. `match`: how likely a text belongs to a picture, beside others (`softmax`) or by itself (`sigmoid`).
   */
  pictures: optional(record({
    section: text,
    type: text,
    match: optional(oneOf("softmax", "sigmoid")),
  })),
  /** Values of `general.architecture` (GGUF) and `model_type` (config.json) that mean this spec. */
  matches: record({ huggingface: list(text), gguf: list(text) }),
  /** Hyperparameters that a file may leave out. */
  defaults: optional(table(scalar)),
  /** Hyperparameters that a file must state: what it would mean without them is not known. */
  required: optional(list(text)),
  /** Hyperparameters that follow from others where a file leaves them out. */
  derived: optional(table(text)),
  /** Differences between members of the family: merged over the rest when all conditions hold. */
  cases: optional(list(record({
    /** Values that hyperparameters have. */
    when: optional(table(scalar)),
    /** Hyperparameters that the file has and that are not 0, and those that it has not or are 0. */
    given: optional(list(text)),
    absent: optional(list(text)),
    /** Roles whose tensors the file has in its first layer, and those that it lacks there. */
    stored: optional(list(text)),
    lacking: optional(list(text)),
    use: table(anything),
  }))),
  embedding: record({
    scale: factor,
    /** Norm right after the embedding. */
    norm: optional(text),
    /** A learnt row for each position is added; tables begin with `offset` rows for other uses. */
    positions: optional(record({ offset: number })),
    /**
     * Sines and cosines of position + `offset` are added, of frequencies 10000^(-i / (d/2 - 1)) as fairseq has
     * them (default), or 10000^(-2i / d) (`plain`). Token `padId` has none.
     */
    sinusoidal: optional(record({
      offset: number,
      padId: optional(number),
      frequencies: optional(oneOf("fairseq", "plain")),
    })),
    /** A learnt row for each token's type (which of two texts it is from) is added. */
    types: optional(flag),
    /** Pictures: rows are projections of their patches, and no tokens. */
    patches: optional(patches),
    /** The embedding has another width and is projected to the model's. */
    projection: optional(flag),
  }),
  norm: record({
    kind: oneOf("rms", "layer"),
    /** The weight in use is `base` + the stored one. */
    base: optional(number),
    /** False: nothing is learnt. */
    weight: optional(flag),
    bias: optional(bias),
  }),
  attention,
  feedForward,
  /** Factor on what a branch adds to the stream. */
  residual: optional(factor),
  /** Residual branches of a layer in order: x = sum(x + residual · scale · after(block(before(from)))). */
  layer: list(branch),
  /** The encoder in front of a decoder; its tensors are the roles that begin with `encoder_`. */
  encoder: optional(record({ layer: list(branch), norm: optional(text), sound: optional(sound) })),
  /** End tokens between the two texts of a pair: "[CLS] a [SEP] b [SEP]" has 1. */
  pairSeparators: optional(number),
  /** How a translation is asked for; `{from}` and `{to}` are the languages. */
  translation: optional(record({
    /** In front of the source text. */
    prompt: optional(text),
    /** Token in front of the source, and token with which the target begins. */
    sourceToken: optional(text),
    targetToken: optional(text),
  })),
  /** The norm behind the layers of an encoder: of all rows, or of the pooled one alone. */
  outputNorm: optional(oneOf("rows", "pooled")),
  /** The vector of a whole sequence or picture. */
  pool: optional(pool),
  /** A head that judges a whole: out(tanh(dense x)) of its first row (true), or out(x) of its pooled one. */
  classifier: optional(either(flag, { second: oneOf("linear"), wanted: 'a flag or "linear"' })),
  head: optional(record({
    /** No norm before the head, where branches end with one. */
    norm: optional(flag),
    bias: optional(bias),
    /** Rows of the matrix count as if they had length 1. */
    unitRows: optional(flag),
    /** The stream is projected to the width of the embedding. */
    projection: optional(flag),
    /** In front of the matrix: norm(activation(dense x)), of this role. */
    transform: optional(record({ norm: text })),
    /** Factor on the logits. */
    scale: optional(factor),
  })),
  names: optional(record({ huggingface: optional(names), gguf: optional(names) })),
});

/** An architecture, checked. */
export type ModelSpec = typeof specRule extends Rule<infer T> ? T : never;

/** A number, or powers of hyperparameters. */
export type Factor = number | Readonly<Record<string, number>>;
