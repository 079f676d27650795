// `deno task bench vision`: a picture, eight, a text, and a picture with a text, one after the other and at once, through
// CLIP ViT-B/32 at its published shapes with random float16 weights (clip_file.ts), tensors in, vectors out. Kernels do the same work whatever the
// weights. Left out: reading and resizing pictures, and peers, whose files would have to hold the same weights.

import type { Precision } from "../../engine/decode/model.ts";
import { openTower, queueOf } from "../../engine/models/load_pictures.ts";
import { prepareModel } from "../../engine/models/prepare.ts";
import { sectionOf } from "../../engine/models/section.ts";
import type { PixelValues } from "../../engine/pictures/prepare.ts";
import { type Device, openDevice } from "../../engine/run/devices.ts";
import { prepareExecutable } from "../../engine/run/executable.ts";
import { addRows, WANTED } from "../../engine/run/step.ts";
import type { GpuProvider } from "../../gpu/capabilities.ts";
import { type Figure, machineName, median } from "../support/figures.ts";
import { clipFile, textOf } from "./clip_file.ts";

/** What to measure. */
export interface VisionBenchOptions {
  readonly backend: "wasm" | "gpu";
  readonly gpu?: GpuProvider;
  readonly threads: readonly number[];
  readonly precision: Precision;
  readonly rounds: number;
}

const WARM_UPS = 2, SIDE = 224, TOKENS = 11;

/** Figures by number of threads, handed out as they are measured. */
export async function* visionBench(options: VisionBenchOptions): AsyncGenerator<Figure> {
  const { backend, gpu, precision, rounds } = options;
  for (const threads of backend === "wasm" ? options.threads : [1]) {
    const device = await openDevice(backend, { threads, shared: true, ...gpu && { gpu } });
    using clip = await openClip(device, precision);
    const where = backend === "wasm" ? `${threads} threads` : backend;
    for (const [name, run] of Object.entries(clip.runs)) {
      const times: number[] = [];
      for (let i = 0; i < rounds + WARM_UPS; i++) {
        const start = performance.now();
        await run();
        if (i >= WARM_UPS) times.push(performance.now() - start);
      }
      yield {
        ...{ bench: "vision", case: `embed ${name}, clip-vit-b32, ${precision}, ${where}` },
        ...{ unit: "ms", value: median(times) },
        ...{ peer: null, peerValue: null, ratio: null, share: null, machine: machineName() },
      };
    }
  }
}

/** Both towers on a device, and what is measured of them. */
async function openClip(device: Device, precision: Precision) {
  const options = { precision, batch: 512 }, file = clipFile();
  const pictures = await openTower(sectionOf(file, { section: "vision_config" }), {
    ...{ options, device },
  });
  const prepared = await prepareModel(file, { options, kernels: device, outputs: { rows: false } });
  const { plan, limits: { sessions: slots, cacheTokens } } = prepared;
  const texts = await prepareExecutable(device.backend, { plan, slots, cacheTokens });
  const queue = queueOf(texts, { name: file.name, limits: prepared.limits });
  const pixels = (count: number): PixelValues => ({
    data: Float32Array.from({ length: count * 3 * SIDE ** 2 }, (_, i) => Math.sin(i * 12.9898)),
    dims: [count, 3, SIDE, SIDE],
  });
  const tokens = textOf(TOKENS);
  const checked = (vector: Float32Array) => {
    if (!Number.isFinite(vector[0])) throw new Error("a vector is not finite");
  };
  const look = (values: PixelValues) =>
    pictures.tower.encode(values, { read: ({ vector }) => checked(vector) });
  const read = () =>
    queue.run({
      write: (step) => void addRows(step, { tokens, slot: 0, wanted: WANTED.logits }),
      read: ({ vectors }) => checked(vectors!(TOKENS - 1)),
    });
  const [one, eight] = [pixels(1), pixels(8)];
  return {
    runs: {
      "picture": () => look(one),
      "8 pictures": () => look(eight),
      "text": read,
      "picture and text": async () => {
        await look(one);
        await read();
      },
      "picture and text at once": () => Promise.all([look(one), read()]),
    },
    [Symbol.dispose]() {
      pictures[Symbol.dispose]();
      texts.dispose();
    },
  };
}
