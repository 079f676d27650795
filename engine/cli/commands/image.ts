// `troodon image`: a picture from a text by a diffusion model, or another one of a given picture.

import { createFile } from "../../io.ts";
import {
  SCHEDULER_CHOICES,
  type SchedulerChoice,
} from "../../pipelines/diffusion/scheduler_names.ts";
import { UsageError } from "../args.ts";
import { type Command, defineCommand } from "../command.ts";
import { readExcludedKernels } from "../excluded_kernels.ts";
import { LOAD_FLAGS, paceOption, parseAdapter, SOURCE_FLAGS } from "../flags.ts";
import { gpuOption } from "../gpu_flag.ts";
import { writeBytes } from "../machine.ts";

/** The command. */
export const image: Command = defineCommand({
  name: "troodon image",
  summary: "Paints a picture from a text, or changes one.",
  positionals: ["PROMPT"],
  flags: {
    model: {
      type: "string",
      value: "MODEL",
      short: "m",
      help:
        "name, owner/repo of the hub, or folder of a diffusers pipeline (Stable Diffusion 1, 2, XL and 3, PixArt, turbo and LCM models of theirs)",
    },
    output: { type: "string", value: "FILE", short: "o", help: "PNG file to write (out.png)" },
    count: {
      type: "integer",
      value: "N",
      min: 1,
      max: 10_000,
      help: "pictures, each by the next seed, into out-1.png and so on (1)",
    },
    negative: { type: "string", value: "TEXT", help: "what the picture is led away from" },
    steps: { type: "integer", value: "N", min: 1, help: "steps from noise to picture (20)" },
    guidance: {
      type: "number",
      value: "X",
      help: "how much the prompt counts; 1: as turbo models want it (diffusers')",
    },
    seed: {
      type: "integer",
      value: "N",
      min: 0,
      help: "of the noise, PyTorch's (drawn, and told)",
    },
    width: {
      type: "integer",
      value: "N",
      min: 1,
      help: "pixels a row, at most 4096 (the model's own)",
    },
    height: { type: "integer", value: "N", min: 1, help: "rows, likewise (the model's own)" },
    scheduler: {
      type: "string",
      choices: SCHEDULER_CHOICES,
      help: "how noise is taken away (the model's own)",
    },
    eta: { type: "number", value: "X", min: 0, max: 1, help: "with ddim: noise drawn anew (0)" },
    init: { type: "string", value: "FILE", help: "picture to change (PNG, JPEG, WebP)" },
    mask: {
      type: "string",
      value: "FILE",
      help: "where --init is painted over: its bright pixels",
    },
    strength: {
      type: "number",
      value: "X",
      min: 0,
      max: 1,
      help: "how much of --init is made anew (0.8; with a mask 1)",
    },
    preview: { type: "string", value: "FILE", help: "PNG file to write anew behind each step" },
    "split-guidance": {
      type: "boolean",
      help: "prompt and negative prompt one after the other: less memory (where it is short)",
    },
    tiles: {
      type: "boolean",
      help: "decode large pictures in tiles: less memory (where it is short)",
    },
    lora: { ...LOAD_FLAGS.lora, help: "adapter to add, a .safetensors file (may be repeated)" },
    device: LOAD_FLAGS.device,
    gpu: LOAD_FLAGS.gpu,
    threads: LOAD_FLAGS.threads,
    precision: {
      type: "string",
      choices: ["fast", "exact"],
      help: "fast: float16 where a GPU multiplies matrices; exact: float32 throughout (fast)",
    },
    "max-submit-ms": LOAD_FLAGS["max-submit-ms"],
    ...SOURCE_FLAGS,
  },
  examples: [
    ["troodon image 'a red fox in the snow' --model ./stable-diffusion-v1-4", "into out.png"],
    ["troodon image 'a fox' -m sd-turbo --steps 1 --guidance 1 -o fox.png", "a turbo model"],
    ["troodon image 'in winter' -m ./sd21 --init street.jpg --strength 0.6", "change a picture"],
    ["troodon image 'a dog' -m ./sd14 --init room.png --mask sofa.png", "paint into one"],
  ],
}, async (context, { positionals: [prompt], flags }) => {
  const { terminal, signal } = context;
  const { model: path, output = "out.png", count = 1 } = flags;
  if (path === undefined) throw new UsageError("Nothing to paint with: give --model MODEL");
  if (/^-$|\.(jpe?g|webp|gif|bmp|tiff?|avif)$/i.test(output)) {
    throw new UsageError(`--output ${output}: PNG is what is written: give a name in .png`);
  }
  const names = Array.from(
    { length: count },
    (_, i) => count === 1 ? output : output.replace(/(\.[^./]*)?$/, `-${i + 1}$1`),
  );
  using files = new DisposableStack();
  // What cannot be written is told before it is painted.
  const targets = names.map((name) => ({ name, file: files.use(createFile(name)) }));
  const { loadImageModel } = await import("../../pipelines/diffusion/load_image_model.ts");
  const { generateImage } = await import("../../pipelines/diffusion/generate_image.ts");
  const { writePng } = await import("../../formats/media/write_png.ts");
  const { readPictures } = await import("../media_files.ts");
  const [init] = await readPictures(context, [flags.init ?? []].flat());
  const [mask] = await readPictures(context, [flags.mask ?? []].flat());
  const { fetchModel } = await import("../fetch.ts");
  const found = await fetchModel(path, { flags, pick: { terminal, signal } });
  using model = await loadImageModel(found, {
    ...{ ...await gpuOption(flags), ...paceOption(flags) },
    device: flags.device,
    threads: flags.threads,
    precision: flags.precision as "fast" | "exact" | undefined,
    adapters: flags.lora?.map(parseAdapter),
    excludeKernels: await readExcludedKernels(flags["cache-dir"]),
  });
  const told = new Set<string>();
  let next = flags.seed;
  for (const [i, { name, file }] of targets.entries()) {
    const start = performance.now(), which = count === 1 ? "" : `picture ${i + 1} of ${count}, `;
    const { picture, seed, notes } = await generateImage(model, prompt!, {
      ...{ steps: flags.steps, guidance: flags.guidance, seed: next, eta: flags.eta },
      ...{ width: flags.width, height: flags.height, negative: flags.negative },
      ...{ init, mask, strength: flags.strength, signal },
      scheduler: flags.scheduler as SchedulerChoice | undefined,
      splitGuidance: flags["split-guidance"],
      tiles: flags.tiles,
      async onProgress({ step, steps, preview }) {
        if (terminal.progress) terminal.err(`\r\x1b[K${which}step ${step} of ${steps}`);
        if (flags.preview !== undefined) {
          await writeBytes(flags.preview, writePng(await preview()));
        }
      },
    });
    if (terminal.progress) terminal.err("\r\x1b[K");
    file.write(writePng(picture));
    file.finish();
    next = seed + 1;
    const { width, height } = picture, ms = Math.round(performance.now() - start);
    const warnings = [...model.warnings, ...notes];
    if (flags.json) {
      const result = { file: name, width, height, seed, device: model.device, ms, warnings };
      terminal.out(JSON.stringify(result) + "\n");
      continue;
    }
    for (const note of warnings) if (!told.has(note)) terminal.err(`note: ${note}\n`);
    for (const note of warnings) told.add(note);
    terminal.out(`${name}: ${width} × ${height}, seed ${seed}, ${(ms / 1000).toFixed(1)} s\n`);
  }
  return 0;
});
