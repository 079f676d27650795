// Prompts as the networks of a pipeline see them: ids of CLIP's tokenizer, cut and filled up to the length that the text
// encoder was trained on, and the hidden states of all of them. What is filled up is looked at like the rest.

import type { HostData } from "../../graph/graph.ts";
import { encodeSequences } from "../../decode/encoder_run.ts";
import type { Model } from "../../decode/model.ts";
import { loadGraph } from "../../onnx/running/load_graph.ts";
import type { LoadGraphOptions } from "../../onnx/running/graph_types.ts";
import type { Tokenizer } from "../../text/tokenizer_types.ts";
import { encoderOf } from "../encoder_text.ts";

/** What makes hidden states of ids. */
export interface TextEncoder extends Disposable {
  /** Numbers of a state; undefined where the file does not say. */
  readonly width: number | undefined;
  /** f32[ids, width]. */
  encode(ids: readonly number[], signal?: AbortSignal): Promise<Float32Array>;
}

/** A text encoder of weights. @throws {UnsupportedError} If it is no encoder. */
export function modelTextEncoder(model: Model): TextEncoder {
  const runtime = encoderOf(model, { use: "encode prompts" });
  return {
    width: runtime.hidden,
    async encode(tokens, signal) {
      let states = new Float32Array(0);
      await encodeSequences(
        runtime,
        { sequences: [{ tokens }], read: ({ hidden }) => states = hidden.slice() },
        signal && { signal },
      );
      return states;
    },
    [Symbol.dispose]: () => model.dispose(),
  };
}

/** A text encoder of an ONNX file. @throws As `loadGraph`. */
export async function onnxTextEncoder(
  path: string,
  options: LoadGraphOptions,
): Promise<TextEncoder> {
  const graph = await loadGraph(path, options);
  const input = graph.inputs[0]!, output = graph.outputs[0]!;
  const width = output.dims?.at(-1);
  return {
    width: typeof width === "number" ? width : undefined,
    async encode(ids, signal) {
      const data = input.type === "int64"
        ? BigInt64Array.from(ids, (id) => BigInt(id))
        : Int32Array.from(ids);
      const given = { [input.name]: { data, dims: [1, ids.length] } };
      const results = await graph.run(given, {
        outputs: [output.name],
        ...signal && { signal },
      });
      const { data: states } = results[output.name] as { readonly data: HostData };
      return Float32Array.from(states as Float32Array);
    },
    [Symbol.dispose]: () => graph.dispose(),
  };
}

/** Ids of a prompt, and how many did not fit. */
export interface PromptIds {
  readonly ids: readonly number[];
  readonly dropped: number;
}

/** Cuts or fills up a prompt. */
export function promptIds(
  tokenizer: Tokenizer,
  { text, length }: { readonly text: string; readonly length: number },
): PromptIds {
  const { prefixIds, suffixIds, padId, eosId } = tokenizer;
  const plain = tokenizer.encode(text, { addSpecial: false });
  const room = length - prefixIds.length - suffixIds.length;
  const ids = [...prefixIds, ...plain.slice(0, room), ...suffixIds];
  const filler = new Array<number>(length - ids.length).fill(padId ?? eosId ?? 0);
  return { ids: [...ids, ...filler], dropped: Math.max(0, plain.length - room) };
}
