// `troodon classify-image`: labels of pictures, those of a classification head, or the caller's by CLIP or SigLIP.

import { UsageError } from "../args.ts";
import { type Command, defineCommand } from "../command.ts";
import { LOAD_FLAGS, loadOptions } from "../flags.ts";
import { showTable } from "../format.ts";

/** Labels that are shown of a head that may have a thousand. */
const SHOWN = 5;

/** The command. */
export const classifyImage: Command = defineCommand({
  name: "troodon classify-image",
  summary: "Says what is in pictures: the labels of a model, or your own with CLIP or SigLIP.",
  positionals: ["MODEL", "FILE…"],
  flags: {
    label: {
      type: "string",
      short: "l",
      multiple: true,
      help: "a label to choose among (repeated), for CLIP and SigLIP",
    },
    template: {
      type: "string",
      value: "TEXT",
      help: 'text that a label becomes, {} in its place ("This is a photo of {}.")',
    },
    top: { type: "integer", value: "N", min: 1, help: `only the best N labels (${SHOWN})` },
    ...LOAD_FLAGS,
  },
  examples: [
    ["troodon classify-image hf:google/vit-base-patch16-224 cat.jpg", "the labels of a head"],
    [
      "troodon classify-image hf:openai/clip-vit-base-patch32 cat.jpg -l cat -l dog",
      "labels of your own",
    ],
    ["troodon classify-image clip/onnx/model.onnx cat.jpg -l cat -l dog", "an ONNX file of them"],
    ["troodon classify-image ./vit *.png --top 1 --json", "many pictures, for scripts"],
  ],
  notes: ["FILE is a PNG, JPEG or WebP: a path, an address, or - for standard input."],
}, async (context, { positionals: [name, ...files], flags }) => {
  const { terminal, signal } = context;
  const { label: labels, template, top = SHOWN } = flags;
  if (files.length === 0) throw new UsageError("Nothing to look at: give a FILE");
  if (template !== undefined && !labels) {
    throw new UsageError("--template is for --label: a head's labels are what they are");
  }
  const { readPictures } = await import("../media_files.ts");
  const pictures = await readPictures(context, files);
  const { openModel } = await import("../open_model.ts");
  const { classifyImage } = await import("../../pipelines/images/classify_image.ts");
  const isGraph = name.endsWith(".onnx");
  using graph = isGraph
    ? await (await import("../image_graph.ts")).openImageGraph(name, { flags, context })
    : undefined;
  using opened = isGraph
    ? undefined
    : await openModel(name, { flags, options: loadOptions(flags), context });
  const model = graph ?? opened!.model, device = graph?.graph.device ?? opened!.model.device;
  const all = await classifyImage(model, pictures, {
    ...labels && { labels },
    ...template !== undefined && { template },
    ...{ top, signal },
  });
  const results = all.map((labels, i) => ({ file: files[i]!, labels }));
  if (flags.json) {
    terminal.out(JSON.stringify({ model: opened?.name ?? name, device, results }) + "\n");
    return 0;
  }
  for (const [index, { file, labels }] of results.entries()) {
    if (results.length > 1) terminal.out(`${index === 0 ? "" : "\n"}${file}\n`);
    const rows = labels.map(({ label, probability }) => [probability.toFixed(4), label]);
    terminal.out(showTable(rows, [0]) + "\n");
  }
  return 0;
});
