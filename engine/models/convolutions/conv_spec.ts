// What a network of convolutions for pictures is, as data: a stem, then stages of residual blocks, each block a list of
// convolutions with a norm that is folded into them, then the mean of all places (He et al., "Deep Residual Learning for
// Image Recognition", 2016). Sizes are keys of the config. To add one: a JSON file in specs/ and a line in specs/mod.ts.

import {
  anything,
  flag,
  list,
  number,
  optional,
  record,
  type Rule,
  table,
  text,
} from "../check.ts";
import { expectedRule } from "../spec_rules.ts";

const layer = record({
  /** What stands for it in the names of a block's tensors. */
  name: text,
  kernel: number,
  /** It has this part of the stage's channels: 4 is a quarter. */
  narrowed: optional(number),
  /** It takes the step of the stage, in the first block. */
  steps: optional(flag),
  /** Whether the activation follows; the last one's follows the sum with what the block read. */
  activated: flag,
});

/** The rules of a spec of convolutions. */
export const convRule = record({
  name: text,
  /** Values of `model_type` that mean it. */
  matches: list(text),
  /** Values that a config may leave out, by key. */
  defaults: table(anything),
  /** Values that keys must have: what else they could ask for is not built. */
  expected: expectedRule,
  normEpsilon: number,
  /** Keys of the channels of pictures, and of the activation. */
  channels: text,
  activation: text,
  /** The first convolution, by the key of its channels, and the largest of windows behind it. */
  stem: record({
    channels: text,
    kernel: number,
    step: number,
    pool: record({ kernel: number, step: number }),
  }),
  /** Keys of blocks and channels by stage; every stage takes a step, the first one if the key `first` says so. */
  stages: record({ depths: text, channels: text, step: number, first: text }),
  /** Key of the kind of block, and the layers of each kind. */
  block: text,
  blocks: table(list(layer)),
  /** What `{prefix}` may stand for. */
  prefixes: list(text),
  /** Names: `{s}` the stage, `{b}` the block, `{l}` the layer. */
  tensors: record({ stem: text, layer: text, shortcut: text, classifier: text }),
  /** What follows the name of a convolution: its weight, and the four tensors of its norm. */
  parts: record({ weight: text, gain: text, bias: text, mean: text, variance: text }),
  /** Endings of tensor names that hold nothing needed. */
  ignored: list(text),
});

/** A network of convolutions, checked. */
export type ConvSpec = typeof convRule extends Rule<infer T> ? T : never;
