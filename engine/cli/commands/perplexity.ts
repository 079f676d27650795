// `troodon perplexity`: how well a model predicts a text; of several models (a file and what `quantize` made of
// it), also by how much the others are worse than the first, as LlamaF's table V has it.

import type { Model } from "../../decode/model.ts";
import type { PerplexityOptions, PerplexityResult } from "../../pipelines/perplexity.ts";
import { UsageError } from "../args.ts";
import { type Command, type Context, defineCommand } from "../command.ts";
import type { SourceFlags } from "../fetch.ts";
import { LOAD_FLAGS, loadOptions } from "../flags.ts";
import { showSeconds, showTable } from "../format.ts";
import type { Plot } from "../plot.ts";
import { specOption } from "../spec_flag.ts";

/** The command. */
export const perplexityCommand: Command = defineCommand({
  name: "troodon perplexity",
  summary: "Measures how well a model predicts a text: lower is better.",
  positionals: ["MODEL", "[OTHER…]"],
  flags: {
    text: { type: "string", value: "FILE", help: "text to predict; - or nothing: standard input" },
    window: {
      type: "integer",
      value: "N",
      min: 2,
      help: "tokens scored together (512, or all a model was trained for)",
    },
    stride: { type: "integer", value: "N", min: 1, help: "from one window to the next (window)" },
    windows: { type: "integer", value: "N", min: 1, help: "most windows to score (all)" },
    plot: { type: "string", value: "FILE", help: "also draw an SVG: the loss of each window" },
    ...LOAD_FLAGS,
  },
  examples: [
    ["troodon perplexity smollm2-135m --text book.txt", "of a whole text"],
    ["troodon perplexity model-q4.gguf --text book.txt --windows 8 --json", "of its beginning"],
    ["troodon perplexity model.gguf model-lf8.safetensors --text book.txt", "what a format costs"],
  ],
  notes: [
    "Windows do not overlap and begin with the beginning-of-text token where the model has one. " +
    "Compare only figures of the same text, tokenizer and window.",
    "--plot fetches npm echarts on first use.",
  ],
}, async (context, { positionals, flags }) => {
  const { terminal, signal } = context;
  const { readText } = await import("../quant_policy.ts");
  const { textOrStdin } = await import("../stdin.ts");
  const [, file] = positionals;
  if (flags.text === undefined && file !== undefined && /\.(txt|md|raw)$/i.test(file)) {
    throw new UsageError(`"${file}" would be another model: give the text as --text ${file}`);
  }
  const fromStdin = flags.text === undefined || flags.text === "-";
  const text = fromStdin
    ? await textOrStdin(terminal, { given: flags.text, flag: "--text" })
    : await readText(flags.text!);
  if (text.trim() === "") {
    throw new UsageError("Nothing to score: give --text FILE, or pipe the text in");
  }
  const { checkLoad } = await import("../check_options.ts");
  checkLoad(loadOptions(flags));
  const window = flags.window ?? await defaultWindow(positionals[0], flags, context);
  const { openModel } = await import("../open_model.ts");
  const options = {
    window,
    signal,
    ...flags.stride !== undefined && { stride: flags.stride },
    ...flags.windows !== undefined && { windows: flags.windows },
  };
  const scores: Score[] = [];
  for (const name of positionals) {
    const load = { contextLength: window, logitRows: 32, ...loadOptions(flags) };
    using opened = await named(() => openModel(name, { flags, options: load, context }));
    const start = performance.now();
    const isQuiet = !terminal.progress || flags.json === true;
    const result = await scoreText(opened.model, {
      text,
      options,
      progress: isQuiet ? undefined : terminal,
    });
    const seconds = (performance.now() - start) / 1000;
    const rise = result.perplexity / (scores[0]?.result.perplexity ?? result.perplexity) - 1;
    const score = { name: opened.name, seconds, result, rise };
    scores.push(score);
    const { windows, ...figures } = result;
    if (flags.json) {
      const facts = { model: opened.name, device: opened.model.device, window };
      const more = positionals.length > 1 ? { rise } : {};
      const line = { ...facts, windows: windows.length, seconds, ...figures, ...more };
      terminal.out(JSON.stringify(line) + "\n");
    } else if (positionals.length === 1) terminal.out(`${describe(score)}\n`);
  }
  if (!flags.json && scores.length > 1) {
    const rows = scores.map((score) => [
      score.name,
      score === scores[0] ? "" : `${(score.rise * 100).toFixed(2)} %`,
      describe(score),
    ]);
    terminal.out(showTable([["", "rise", "perplexity"], ...rows], [1]) + "\n");
  }
  if (flags.plot !== undefined) {
    const { writePlot } = await import("../plot.ts");
    await writePlot(flags.plot, lossPlot(scores));
  }
  return 0;
});

interface Score {
  readonly name: string;
  readonly seconds: number;
  readonly result: PerplexityResult;
  /** Over the first model, as a share of it. */
  readonly rise: number;
}

const DEFAULT_WINDOW = 512;

/** The usual window, or all that the first model was trained for. */
async function defaultWindow(
  name: string | undefined,
  flags: Parameters<typeof loadOptions>[0] & Parameters<typeof specOption>[0] & SourceFlags,
  context: Context,
): Promise<number> {
  const { fetchModel } = await import("../fetch.ts");
  const { inspectModel } = await import("../../models/load.ts");
  const path = await fetchModel(name, { flags, pick: context });
  const { info } = await inspectModel(path, { ...loadOptions(flags), ...await specOption(flags) });
  return Math.min(DEFAULT_WINDOW, info.trainedContextLength);
}

/** The context is as long as a window, which is the flag that was given. */
async function named<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (!/\bcontextLength\b/.test(error.message)) throw error;
    throw new UsageError(error.message.replace(/\bcontextLength\b:?/g, "--window"));
  }
}

async function scoreText(
  model: Model,
  { text, options, progress }: {
    readonly text: string;
    readonly options: PerplexityOptions;
    readonly progress: Context["terminal"] | undefined;
  },
): Promise<PerplexityResult> {
  const { perplexity } = await import("../../pipelines/perplexity.ts");
  let nll = 0, scored = 0;
  const result = await perplexity(model, text, {
    ...options,
    onWindow(done) {
      nll += done.nll;
      scored += done.scored;
      progress?.err(`\r\x1b[K${done.index + 1} windows: ${Math.exp(nll / scored).toFixed(3)}`);
    },
  });
  progress?.err("\r\x1b[K");
  return result;
}

function describe({ seconds, result }: Score): string {
  const { perplexity, standardError, scored, windows } = result;
  const value = `${perplexity.toFixed(4)} ± ${standardError.toFixed(4)}`;
  return `${value}  (${scored} tokens, ${windows.length} window${
    windows.length === 1 ? "" : "s"
  }, ${showSeconds(seconds)})`;
}

/** Mean loss of each window, a line a model. */
export function lossPlot(scores: readonly Pick<Score, "name" | "result">[]): Plot {
  return {
    title: "Loss by window",
    unit: "nats a token",
    kind: "lines",
    labels: (scores[0]?.result.windows ?? []).map(({ index }) => `${index + 1}`),
    series: scores.map(({ name, result }) => ({
      name: name.split(/[/\\]/).at(-1)!,
      values: result.windows.map(({ nll, scored }) => scored === 0 ? 0 : nll / scored),
    })),
  };
}
