// Text encoders of pipelines: networks by spec (CLIP's and T5's), or ONNX files as Optimum exports them. They see a prompt
// filled up to the length that the network was trained with, and give the states that a pipeline may want of it.

import { firstOf, type Network, type Tensor } from "../../models/networks/network.ts";
import type { PromptIds } from "./prompt_ids.ts";

/** What an encoder says of a prompt. */
export interface TextStates {
  /** Behind the last layer, f32[ids, width]. */
  readonly last: Float32Array;
  /** In front of the last layer; undefined where the file does not give them. */
  readonly before: Float32Array | undefined;
  /** A vector of the whole prompt, if there is one. */
  readonly pooled: Float32Array | undefined;
}

/** What makes states of ids. */
export interface TextEncoder extends Disposable {
  /** Numbers of a state; undefined where the file does not say. */
  readonly width: number | undefined;
  encode(prompt: PromptIds, signal?: AbortSignal): Promise<TextStates>;
}

/** A text encoder of a network that is taken over. @param endId The token at whose place the vector of a prompt stands. */
export function createTextEncoder(
  network: Network,
  { width, endId, inputs, before = "before" }: {
    readonly width: number | undefined;
    readonly endId: number | undefined;
    /** Names of its inputs. */
    readonly inputs: readonly string[];
    /** Its result for the states in front of the last layer. */
    readonly before?: string | undefined;
  },
): TextEncoder {
  return {
    width,
    async encode({ ids, count }, signal) {
      const dims = [1, ids.length];
      const given: Record<string, Tensor> = {
        input_ids: { data: Float32Array.from(ids), dims },
        ends: { data: marked(ids, endOf(ids, endId)), dims },
        attention_mask: { data: Float32Array.from(ids, (_, i) => i < count ? 1 : 0), dims },
      };
      const taken = inputs.filter((name) => given[name]).map((name) => [name, given[name]!]);
      const results = await network.run(Object.fromEntries(taken), signal);
      const output = (...names: readonly string[]) =>
        names.map((name) => results.get(name)).find((one) => one !== undefined);
      return {
        last: output("last", "last_hidden_state") ?? firstOf(results),
        before: output(before),
        pooled: output("pooled", "text_embeds", "pooler_output"),
      };
    },
    [Symbol.dispose]: () => network[Symbol.dispose](),
  };
}

/** CLIP's configs say 2 where they were written too early: the token is then the one of the largest id. */
const STALE_END = 2;

function endOf(ids: readonly number[], endId: number | undefined): number {
  const found = endId === undefined || endId === STALE_END ? -1 : ids.indexOf(endId);
  return found >= 0 ? found : ids.indexOf(Math.max(...ids));
}

function marked(ids: readonly number[], at: number): Float32Array {
  return Float32Array.from(ids, (_, i) => i === at ? 1 : 0);
}
