// `troodon quantize`: a model in other number formats.

import { closing } from "../../byte_source.ts";
import { type Command, defineCommand } from "../command.ts";
import { ALIASES } from "../../../quant/names.ts";
import { encodedNames } from "../../../quant/mod.ts";
import { policyNames } from "../../../quant/policies.ts";
import type { QuantizeResult } from "../../quantize/quantize.ts";
import { SOURCE_FLAGS } from "../flags.ts";
import { showBytes, showCount, showSeconds, showTable } from "../format.ts";
import type { Terminal } from "../terminal.ts";
import { fallbackLines, someNames } from "../fallback_formats.ts";

const CALIBRATED_METHODS = ["gptq", "awq", "importance"] as const;

// A name without its mixture's size is that of the middle one.
const SINGLE_FORMATS = encodedNames().filter((name) =>
  !policyNames.includes(name) && !policyNames.includes(`${name}_M`)
);
const SHORT_NAMES = Object.entries(ALIASES).flatMap(([short, name]) =>
  policyNames.includes(short) ? [] : [`${short} = ${name}`]
);

function listed(names: readonly string[]): string {
  return names.join(", ").toLowerCase();
}

/** The command. */
export const quantize: Command = defineCommand({
  name: "troodon quantize",
  summary: "Writes a model anew in another number format.",
  positionals: ["IN", "OUT"],
  flags: {
    format: {
      type: "string",
      value: "F",
      help: "q4_0 … q8_0, q2_k, q3_k_s … q6_k, f16, bf16, lf8, e0m4, int4, q3h, q8, 8/4/4, …",
    },
    policy: {
      type: "string",
      value: "FILE",
      help: "JSON that says which tensor gets which format",
    },
    outliers: {
      type: "number",
      value: "SHARE",
      min: 0,
      help: "keep this share of each matrix, the largest weights, in float32 beside it (0)",
    },
    levels: {
      type: "string",
      choices: ["paper", "upstream"],
      help: "levels of Inferflow's blocks and of lf8: of the paper or of its program (paper)",
    },
    saturate: {
      type: "boolean",
      help: "store NaN as 0 and infinities as 65504, do not refuse them",
    },
    calibrate: {
      type: "string",
      value: "TEXT",
      help: "file with a text that the model is run on, to round by what its matrices are given",
    },
    method: {
      type: "string",
      choices: CALIBRATED_METHODS,
      help: "what is made of the text (gptq)",
    },
    "calibrate-tokens": {
      type: "integer",
      value: "N",
      min: 2,
      help: "most tokens of the text, in pieces of 512 spread over it (8192)",
    },
    imatrix: {
      type: "string",
      value: "FILE",
      help: "importance matrix of llama.cpp, GGUF or .dat, instead of a text",
    },
    threads: {
      type: "integer",
      value: "N",
      min: 1,
      help: "CPU threads (all, 4 of them to encode)",
    },
    ...SOURCE_FLAGS,
  },
  examples: [
    ["troodon quantize model-f16.gguf model-q4.gguf --format q4_k_m", "a mixture of llama.cpp"],
    ["troodon quantize model.gguf model.safetensors --format e0m4", "a format that ggml lacks"],
    ["troodon quantize my-llama/ my-llama-844 --format 8/4/4", "a Hugging Face folder"],
    ["troodon quantize in.gguf out.gguf --policy mine.json", "formats by a policy of your own"],
    [
      "troodon quantize in.gguf out.safetensors --format q4 --outliers 0.001",
      "a thousandth of the weights as they are",
    ],
    [
      "troodon quantize in.gguf out.gguf --format q4_k_m --calibrate book.txt",
      "less loss at the same size, in some minutes",
    ],
  ],
  notes: [
    "GGUF becomes GGUF where ggml has the format, else safetensors that Troodon opens; a Hugging Face " +
    "folder becomes a folder. OUT must not exist. Rows that are no multiple of a block get a stand-in, at " +
    "last F16, and are named.",
    "--calibrate runs the model on a text, with about 1 GB beside it; larger models go over the text several " +
    "times. gptq makes up for the error of one column with others that move along with it; awq multiplies " +
    "columns of large inputs before rounding, and divides norms and rows before them (adapters of the " +
    "original do not fit the result); importance chooses scales of K formats as llama.cpp's imatrix does. " +
    "Stacked experts and tables are rounded to nearest, and named.",
    'A policy: {"format":"q4_k","rules":[{"roles":["ffn_down"],"layers":{"favoured":true},' +
    '"format":"q6_k"},{"pattern":"^blk\\\\.0\\\\.","format":"keep"}]}. The first rule that fits ' +
    "decides; norms, biases and tables stay as they are unless a rule names their role.",
    `Mixtures, and formats of their papers: ${
      listed(policyNames)
    }. Formats that go to every matrix: ` +
    `${listed(SINGLE_FORMATS)}.`,
    `Short names: ${listed(SHORT_NAMES)}.`,
  ],
}, async ({ terminal, signal }, { positionals: [input, output], flags }) => {
  const start = performance.now();
  const { choosePolicy } = await import("../quant_policy.ts");
  const { readCalibration, readImportance, withOutliers } = await import("../quantize_flags.ts");
  const calibration = await readCalibration(flags);
  const importance = await readImportance(flags);
  const chosen = await choosePolicy(flags.format, flags.policy);
  const policy = flags.outliers === undefined ? chosen : withOutliers(chosen, flags.outliers);
  const { fetchModel } = await import("../fetch.ts");
  const { openModel } = await import("../../models/open_model.ts");
  const { quantizeModel } = await import("../../quantize/quantize.ts");
  const file = await openModel(await fetchModel(input, { flags, pick: { terminal, signal } }));
  let done = 0;
  const show = (progress: string) => {
    if (terminal.progress && !flags.json) terminal.err(`\r\x1b[K${progress}`);
  };
  using _file = closing(file);
  const result = await quantizeModel(file, { path: output!, policy }, {
    signal,
    ...flags.levels && { levels: flags.levels },
    ...flags.saturate && { saturate: true },
    ...flags.threads !== undefined && { threads: flags.threads },
    ...importance && { importance },
    ...calibration && {
      calibration: {
        ...calibration,
        onWindow: ({ pass, windows, of }) => show(`text, pass ${pass}: ${windows} of ${of}`),
      },
    },
    onTensor({ name }) {
      done++;
      show(`${done} of ${file.tensors.size}  ${name}`);
    },
  });
  if (terminal.progress && !flags.json) terminal.err("\r\x1b[K");
  const seconds = (performance.now() - start) / 1000;
  if (flags.json) {
    terminal.out(JSON.stringify({ output, policy: policy.name, seconds, ...result }) + "\n");
    return 0;
  }
  const guide = calibration ? "text" : importance ? "importance matrix" : undefined;
  report(terminal, { result, guide });
  const sizes = `${showBytes(result.sourceBytes)} became ${showBytes(result.bytes)}`;
  terminal.out(`${output}: ${sizes} in ${showSeconds(seconds)}\n`);
  return 0;
});

/** Tells what became of the tensors, by format, and what is unusual. */
function report(
  terminal: Terminal,
  { result, guide }: { readonly result: QuantizeResult; readonly guide: string | undefined },
): void {
  for (const warning of result.warnings) terminal.err(`warning: ${warning}\n`);
  for (const line of fallbackLines(result.tensors)) terminal.err(`${line}\n`);
  for (const { name, saturated } of result.tensors) {
    if (saturated) {
      terminal.err(`${name}: ${saturated} values were not finite and were replaced\n`);
    }
  }
  const unguided = result.tensors.filter(({ method }) => method === "nearest");
  if (guide !== undefined && unguided.length > 0) {
    const names = someNames(unguided);
    terminal.err(`rounded to nearest, as the ${guide} does not guide them: ${names}\n`);
  }
  const rows = Object.entries(Object.groupBy(result.tensors, ({ to }) => to)).map(
    ([format, tensors = []]) => {
      const worst = Math.max(...tensors.map(({ error }) => error?.relative ?? 0));
      const apart = tensors.reduce((sum, { outliers }) => sum + outliers, 0);
      return [
        format,
        `${tensors.length} tensors`,
        showBytes(tensors.reduce((sum, { bytes }) => sum + bytes, 0)),
        worst > 0 ? `error up to ${(worst * 100).toPrecision(3)} %` : "",
        apart > 0 ? `${showCount(apart)} outliers apart` : "",
      ];
    },
  );
  terminal.out(showTable(rows, [1, 2]) + "\n");
  if (result.calibration) {
    const { tokens, bytes } = result.calibration;
    terminal.out(`calibrated on ${tokens} tokens, with ${showBytes(bytes)} of statistics\n`);
  }
}
