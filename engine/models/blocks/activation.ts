// The words that config files use for activations, and what the graph's ops call them. "gelu" is the exact form with
// erf, "gelu_tanh" the approximation: mixing them up moves logits by up to 7e-3 and no argmax, so a file's word is never guessed.

import { FormatError, UnsupportedError } from "../../errors.ts";
import { UNARY, UNARY_NAMES, type UnaryName } from "../../../functions/unary.ts";
import type { Value } from "../../graph/graph.ts";
import type { BlockContext } from "./context.ts";

/** A function, and its factor where that is not the usual one. */
export interface Activation {
  readonly kind: UnaryName;
  readonly alpha?: number;
}

/** Functions by the words of config files. */
export const ACTIVATION_WORDS: ReadonlyMap<string, Activation> = new Map<string, Activation>([
  ...UNARY_NAMES.flatMap((kind) =>
    (UNARY[kind].words ?? []).map((word) => [word, { kind }] as const)
  ),
  // x · sigmoid(1.702 x), which CLIP was trained with.
  ["quick_gelu", { kind: "silu", alpha: 1.702 }],
]);

/**
 * The activation of a model's gated blocks: the spec's, else what the file says.
 *
 * @throws {UnsupportedError} If nothing here computes it. @throws {FormatError} If neither says one.
 */
export function activationOf(context: BlockContext): UnaryName {
  const { kind, alpha } = found(context);
  if (alpha === undefined) return kind;
  throw new UnsupportedError(`a gate with ${wordOf(context)} is not built`, {
    ...{ file: context.file, place: "activation of the feed-forward blocks" },
  });
}

/** x through the activation of a model's feed-forward blocks. @throws As `activationOf`. */
export function activated(
  context: BlockContext,
  { x, name }: { readonly x: Value; readonly name: string },
): Value {
  return context.builder.op("unary", [x], { ...found(context) }, name)[0]!;
}

function wordOf({ spec, params }: BlockContext): string | undefined {
  return spec.feedForward.activation ?? params.activation;
}

function found(context: BlockContext): Activation {
  const { file } = context, word = wordOf(context);
  if (word === undefined) {
    throw new FormatError("is missing, and the model cannot be built without it", {
      file,
      place: "activation",
    });
  }
  const activation = ACTIVATION_WORDS.get(word);
  if (activation) return activation;
  throw new UnsupportedError(
    `activation "${word}" is not built: known are ${[...ACTIVATION_WORDS.keys()].join(", ")}`,
    { file, place: "activation of the feed-forward blocks" },
  );
}
