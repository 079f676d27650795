// What building and checking a graph asks of an op. The graph knows ops by name only: who builds one says
// where the rules are, so that this folder stands below the ops that are written in its terms.

import type { Attributes, TensorType } from "./graph.ts";

/** The part of an op that decides how its nodes look. */
export interface OpRules {
  /**
   * The same attributes, checked and with defaults filled in; nodes hold what this returns.
   *
   * @throws {TypeError} On an attribute that is unknown, missing or of the wrong kind or value.
   */
  attributes(given: Attributes): Attributes;
  /**
   * Shape rule.
   *
   * @throws {TypeError} On wrong kinds of inputs. @throws {RangeError} On shapes that do not fit.
   */
  infer(
    inputs: readonly (TensorType | undefined)[],
    attributes: Attributes,
  ): TensorType[];
  /** `inPlace[o] = i`: output `o` is input `i`'s memory, changed (states) or seen anew (views). */
  inPlace?(attributes: Attributes): Readonly<Record<number, number>>;
  /** True if nothing is computed: the node is no step of a plan and has no kernel. */
  readonly view?: boolean;
}

/**
 * Finds the rules of an op.
 *
 * @throws {UnsupportedError} If there is no such op.
 */
export type OpLookup = (name: string) => OpRules;
