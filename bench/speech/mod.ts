// `deno task bench speech`: 30 seconds of sound and 100 tokens with a model of whisper-tiny's size and random weights:
// features, the encoder, and greedy steps, as transcribe() makes them. The peer is onnxruntime-web in Deno with graphs of
// the same shapes (bench/onnx/networks.ts), in turns: its encoder once, and 100 times its decoder behind 50 tokens, which
// are as many as there are on average. Of the peer nothing else is counted: no features, no inputs, no search for the best
// logit.

import { load, type Session } from "../../mod.ts";
import { logMel } from "../../engine/pipelines/speech/log_mel.ts";
import type { InputRule } from "../onnx/inputs.ts";
import { whisperEncoder, whisperStep } from "../onnx/networks.ts";
import { preparePeers, VERSIONS } from "../onnx/peers.ts";
import { type Figure, machineName, median, ratioOf } from "../support/figures.ts";
import { type Runner, startRunner } from "../support/runner.ts";
import { writeRandomWhisper } from "./random_whisper.ts";

/** What to measure. */
export interface SpeechBenchOptions {
  readonly threads: readonly number[];
  readonly rounds: number;
  readonly precision: "fast" | "exact";
  readonly peer: boolean;
}

const RATE = 16000, SECONDS = 30, TOKENS = 100, MELS = 80;
const PROMPT = [50258, 50259, 50359, 50363];

/** Milliseconds of each part, by round. */
type Times = Record<"features" | "encode" | "decode" | "whole", number[]>;

const noTimes = (): Times => ({ features: [], encode: [], decode: [], whole: [] });

/** Milliseconds of each part, for every number of threads. */
export async function* speechBench(
  { threads, rounds, precision, peer: withPeer }: SpeechBenchOptions,
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
      await using peer = withPeer ? await startPeer(folder, count) : undefined;
      const own = noTimes(), others = noTimes();
      // The first round warms up.
      for (let round = 0; round <= rounds; round++) {
        await listen(session, { sound, times: round > 0 ? own : noTimes() });
        await peer?.listen(round > 0 ? others : noTimes());
      }
      for (const part of ["features", "encode", "decode", "whole"] as const) {
        const value = median(own[part]);
        const peerValue = others[part].length > 0 ? median(others[part]) : null;
        yield {
          ...{ bench: "speech", case: `${part} whisper-tiny, ${SECONDS} s, ${TOKENS} tokens` },
          ...{ unit: "ms", value, peerValue, ratio: ratioOf("ms", value, peerValue), share: null },
          peer: peerValue === null ? null : `onnxruntime-web ${VERSIONS.web} in Deno`,
          machine: `${machineName()}, ${count} used, ${precision}`,
        };
      }
    }
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

/** Reads the sound, and takes its tokens one by one. */
async function listen(
  session: Session,
  { sound, times }: { readonly sound: Float32Array; readonly times: Times },
): Promise<void> {
  const start = performance.now();
  const { values } = await logMel(sound, { mels: MELS, rate: RATE, frame: 400, hop: 160 });
  const made = performance.now();
  await session.encode(values);
  const read = performance.now();
  await session.sync(PROMPT);
  for (let token = 0; token < TOKENS; token++) {
    session.logits();
    await session.eval([token]);
  }
  const end = performance.now();
  times.features.push(made - start);
  times.encode.push(read - made);
  times.decode.push(end - read);
  times.whole.push(end - start);
}

/** Starts onnxruntime-web with both halves, each in a process of its own. */
async function startPeer(folder: string, threads: number) {
  const { packages } = await preparePeers();
  const start = async (name: string, bytes: Uint8Array, input: InputRule): Promise<Runner> => {
    const path = `${folder}/${name}.onnx`;
    Deno.writeFileSync(path, bytes);
    const plain = ["--no-lock", "--no-config", "--node-modules-dir=manual"];
    const program = ["bench/onnx/onnxruntime_web.ts", path, `${threads}`];
    return await startRunner([...plain, ...program, JSON.stringify([input]), packages]);
  };
  const dims = [1, MELS, 100 * SECONDS];
  const encoder = await start("encoder", whisperEncoder(), {
    ...{ name: "features", type: "float32", dims, fill: "wave" },
  });
  const decoder = await start("decoder", whisperStep(TOKENS / 2), {
    ...{ name: "token", type: "int64", dims: [1, 1], fill: "one" },
  });
  return {
    async listen({ encode, decode, whole }: Times): Promise<void> {
      const read = (await encoder.ask({ op: "graph", runs: 1 })).ms!;
      const told = TOKENS * (await decoder.ask({ op: "graph", runs: TOKENS })).ms!;
      encode.push(read);
      decode.push(told);
      whole.push(read + told);
    },
    async [Symbol.asyncDispose]() {
      await encoder.close();
      await decoder.close();
    },
  };
}
