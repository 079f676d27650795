// The inputs of attention by name. Most nodes have few of them, far apart in the list.

/** In the order of a node's list. */
export const ATTENTION_INPUTS = [
  ...["q", "k", "v", "mask", "key_counts", "sinks", "new_k", "new_v"] as const,
  ...["positions", "slots", "slopes", "starts", "ends", "bias"] as const,
  ...["table", "query_norm", "key_norm", "rows"] as const,
] as const;

/** Name of an input. */
export type AttentionInput = typeof ATTENTION_INPUTS[number];

/** Inputs by name; absent ones are undefined. */
export type AttentionInputs<T> = { readonly [Name in AttentionInput]?: T | undefined };

/** A node's inputs by name. */
export function attentionInputs<T>(list: readonly (T | undefined)[]): AttentionInputs<T> {
  return Object.fromEntries(list.map((input, i) => [ATTENTION_INPUTS[i]!, input]));
}

/** A node's list of inputs. */
export function attentionList<T>(given: AttentionInputs<T>): (T | undefined)[] {
  const count = 1 + ATTENTION_INPUTS.findLastIndex((name) => given[name] !== undefined);
  return ATTENTION_INPUTS.slice(0, count).map((name) => given[name]);
}
