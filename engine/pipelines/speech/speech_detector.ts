// Voice activity detection with an ONNX graph of Silero's form: inputs `input` [1, context + chunk],
// `state` [2, 1, 128] and `sr`, outputs `output` [1, 1] and the next state. A detector is a stream: it
// keeps the state and the last samples of the chunk before, as the model was trained with them.

import type { GraphTensor } from "../../onnx/running/graph_tensor.ts";
import type { LoadedGraph } from "../../onnx/running/graph_types.ts";

/**
 * Samples a second that the model knows.
 * @category Speech
 */
export type SpeechRate = 8000 | 16000;

/**
 * Tells chunk by chunk how probable it is that somebody speaks.
 * @category Speech
 */
export interface SpeechDetector {
  /** Samples a chunk: 512 at 16 kHz, 256 at 8 kHz. */
  readonly chunk: number;
  /**
   * The probability for the next chunk.
   *
   * @param samples Between -1 and 1; fewer than a chunk are followed by silence.
   * @throws {RangeError} If there are more samples than a chunk, or none.
   */
  next(samples: Float32Array): Promise<number>;
  /** Forgets what came before. */
  reset(): void;
}

const STATE_DIMS = [2, 1, 128];

/**
 * Makes a detector.
 *
 * @param graph A loaded graph; detectors may share one.
 * @throws {TypeError} If the graph has other inputs or outputs.
 * @throws {RangeError} If the model does not know the rate.
 *
 * @example
 * ```ts ignore
 * import { createSpeechDetector, loadGraph, readWav } from "@troodon/troodon";
 *
 * using graph = await loadGraph("silero-vad");
 * const detector = createSpeechDetector(graph, 16000);
 * const { samples } = readWav(await Deno.readFile("talk.wav"));
 * for (let at = 0; at < samples.length; at += detector.chunk) {
 *   console.log(await detector.next(samples.subarray(at, at + detector.chunk)));
 * }
 * ```
 * @category Speech
 */
export function createSpeechDetector(graph: LoadedGraph, rate: SpeechRate): SpeechDetector {
  if (rate !== 8000 && rate !== 16000) {
    throw new RangeError(`Cannot detect speech at ${rate} Hz: resample to 8000 or 16000`);
  }
  if (!Array.isArray(graph?.inputs)) {
    throw new TypeError("Cannot detect speech: give a graph from loadGraph()");
  }
  const given = graph.inputs.map(({ name }) => name).sort().join(", ");
  const [probability, next] = graph.outputs.map(({ name }) => name);
  if (given !== "input, sr, state" || next === undefined || graph.outputs.length !== 2) {
    throw new TypeError(`Cannot detect speech: the graph takes ${given}, not input, sr, state`);
  }
  const chunk = rate / 31.25, context = chunk / 8;
  const window = new Float32Array(context + chunk);
  const input: GraphTensor = { data: window, dims: [1, window.length] };
  const sr: GraphTensor = { data: BigInt64Array.of(BigInt(rate)), dims: [] };
  const silent = (): GraphTensor => ({ data: new Float32Array(256), dims: STATE_DIMS });
  let state = silent();
  return {
    chunk,
    async next(samples) {
      if (samples.length < 1 || samples.length > chunk) {
        throw new RangeError(`Cannot take ${samples.length} samples: give 1 to ${chunk}`);
      }
      window.copyWithin(0, chunk);
      window.fill(0, context);
      window.set(samples, context);
      const results = await graph.run({ input, state, sr });
      state = results[next] as GraphTensor;
      return ((results[probability!] as GraphTensor).data as Float32Array)[0]!;
    },
    reset() {
      window.fill(0);
      state = silent();
    },
  };
}
