// `deno task bench speech`: 30 seconds of sound and 100 tokens with a model of whisper-tiny's size and random weights:
// features, the encoder, and greedy steps, as transcribe() makes them. There is no peer yet: onnxruntime-web needs an
// ONNX export of the same size.

import { load } from "../../mod.ts";
import { logMel } from "../../engine/pipelines/speech/log_mel.ts";
import { type Figure, machineName, median } from "../support/figures.ts";
import { writeRandomWhisper } from "./random_whisper.ts";

/** What to measure. */
export interface SpeechBenchOptions {
  readonly threads: readonly number[];
  readonly rounds: number;
  readonly precision: "fast" | "exact";
}

const RATE = 16000, SECONDS = 30, TOKENS = 100;
const PROMPT = [50258, 50259, 50359, 50363];

/** Milliseconds of each part, for every number of threads. */
export async function* speechBench(
  { threads, rounds, precision }: SpeechBenchOptions,
): AsyncGenerator<Figure> {
  const folder = Deno.makeTempDirSync();
  try {
    writeRandomWhisper(folder);
    const sound = Float32Array.from(
      { length: RATE * SECONDS },
      (_, n) => 0.3 * Math.sin(n * n / 1e7),
    );
    for (const count of threads) {
      using model = await load(folder, { device: "wasm", threads: count, precision });
      using session = model.createSession();
      const times: Record<string, number[]> = { features: [], encode: [], decode: [], whole: [] };
      for (let round = 0; round <= rounds; round++) {
        const start = performance.now();
        const { values } = await logMel(sound, { mels: 80, rate: RATE, frame: 400, hop: 160 });
        const made = performance.now();
        await session.encode(values);
        const read = performance.now();
        await session.sync(PROMPT);
        for (let token = 0; token < TOKENS; token++) {
          session.logits();
          await session.eval([token]);
        }
        const end = performance.now();
        if (round === 0) continue; // the first one warms up
        times.features!.push(made - start);
        times.encode!.push(read - made);
        times.decode!.push(end - read);
        times.whole!.push(end - start);
      }
      for (const [part, all] of Object.entries(times)) {
        yield {
          ...{ bench: "speech", case: `${part} whisper-tiny, ${SECONDS} s, ${TOKENS} tokens` },
          ...{ unit: "ms", value: median(all), peer: null, peerValue: null, ratio: null },
          ...{ share: null, machine: `${machineName()}, ${count} used, ${precision}` },
        };
      }
    }
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}
