// `troodon quant-error`: how far number formats are from a model's weights.

import { closing } from "../../byte_source.ts";
import type { ModelQuantError } from "../../quantize/quant_error.ts";
import { UsageError } from "../args.ts";
import { type Command, defineCommand } from "../command.ts";
import { SOURCE_FLAGS } from "../flags.ts";
import { showTable } from "../format.ts";
import type { Plot } from "../plot.ts";
import { type FallbackFormat, fallbackLines } from "../fallback_formats.ts";

/** The command. */
export const quantError: Command = defineCommand({
  name: "troodon quant-error",
  summary: "Measures how far number formats are from a model's weights.",
  positionals: ["MODEL", "[OTHER]"],
  flags: {
    format: {
      type: "string",
      value: "F",
      multiple: true,
      help: "format or mixture to try (may be repeated); without: compare with OTHER",
    },
    levels: {
      type: "string",
      choices: ["paper", "upstream"],
      help: "levels of Inferflow's blocks and of lf8: of the paper or of its program (paper)",
    },
    only: { type: "string", value: "REGEXP", help: "only tensors of such names" },
    tensors: {
      type: "boolean",
      help: "a line for every tensor; of several formats: their mean errors side by side",
    },
    plot: { type: "string", value: "FILE", help: "also draw an SVG: mean errors by tensor" },
    threads: {
      type: "integer",
      value: "N",
      min: 1,
      help: "CPU threads that encode (all, 4 at most)",
    },
    ...SOURCE_FLAGS,
  },
  examples: [
    ["troodon quant-error model-f16.gguf --format e0m4 --format int4", "two formats side by side"],
    [
      "troodon quant-error model-f16.gguf --format e0m4 --format int4 --tensors --only '^blk\\.0\\.'",
      "mean errors of one layer's matrices, and their ratio",
    ],
    [
      "troodon quant-error model-f16.gguf model-q4.gguf --tensors",
      "what a quantised file has lost",
    ],
    ["troodon quant-error model-f16.gguf --format lf8 --plot lf8.svg --json", "for scripts"],
  ],
  notes: [
    "max, min, mean and std are of the magnitudes of the errors; relative is the root mean square of the " +
    "errors over that of the weights; each is the mean of the errors as shares of their weights, ± its " +
    "standard deviation. Norms and biases are left out.",
    "--plot fetches npm echarts on first use.",
  ],
}, async (context, { positionals: [name, other], flags }) => {
  const { terminal, signal } = context;
  const formats = flags.format ?? [];
  if ((formats.length > 0) === (other !== undefined)) {
    throw new UsageError("Give either OTHER or --format");
  }
  const only = patternOf(flags.only);
  const { choosePolicy } = await import("../quant_policy.ts");
  const policies = await Promise.all(formats.map((format) => choosePolicy(format, undefined)));
  const { fetchModel } = await import("../fetch.ts");
  const { openModel } = await import("../../models/open_model.ts");
  const { fileError, policyError } = await import("../../quantize/quant_error.ts");
  const options = {
    signal,
    ...flags.levels && { levels: flags.levels },
    ...flags.threads !== undefined && { threads: flags.threads },
    ...only && { only },
  };
  const file = await openModel(await fetchModel(name, { flags, pick: context }));
  const results: Result[] = [];
  try {
    for (const policy of policies) {
      results.push({ name: policy.name, error: await policyError(file, policy, options) });
    }
    if (other !== undefined) {
      const twin = await openModel(await fetchModel(other, { flags, pick: context }));
      using _twin = closing(twin);
      results.push({ name: other, error: await fileError(file, twin, options) });
    }
  } finally {
    file.close();
  }
  if (results[0]!.error.tensors.length === 0) {
    throw new UsageError(`No matrix of ${name} is left to compare`);
  }
  if (flags.plot !== undefined) {
    const { writePlot } = await import("../plot.ts");
    await writePlot(flags.plot, errorPlot(file.name, results));
  }
  if (flags.json) {
    for (const { name: format, error } of results) {
      terminal.out(JSON.stringify({ model: name, format, ...error }) + "\n");
    }
    return 0;
  }
  for (const line of results.flatMap(({ error }) => fallbackLines(error.tensors.map(asStored)))) {
    terminal.err(`${line}\n`);
  }
  if (flags.tensors && results.length > 1) terminal.out(sideBySide(results) + "\n");
  const rows = results.flatMap(({ name: format, error }) => [
    ...(flags.tensors && results.length === 1
      ? error.tensors.map((tensor) => row(tensor.name, tensor.bits, tensor))
      : []),
    row(format, error.bits, error.total),
  ]);
  const head = ["", "bits", "max", "min", "mean", "std", "relative", "each"];
  terminal.out(showTable([head, ...rows], [1, 2, 3, 4, 5, 6, 7]) + "\n");
  return 0;
});

interface Result {
  readonly name: string;
  readonly error: ModelQuantError;
}

function asStored({ format, ...tensor }: ModelQuantError["tensors"][number]): FallbackFormat {
  return { ...tensor, to: format };
}

function patternOf(text: string | undefined): RegExp | undefined {
  if (text === undefined) return undefined;
  try {
    return new RegExp(text);
  } catch (error) {
    throw new UsageError(`--only takes a regular expression: ${(error as Error).message}`);
  }
}

function row(name: string, bits: number, error: ModelQuantError["total"]): string[] {
  const { max, min, mean, std, relative, eachMean, eachStd } = error;
  const figures = [max, min, mean, std].map((value) => value.toExponential(2));
  const percent = (value: number) => `${(value * 100).toPrecision(3)} %`;
  const each = `${percent(eachMean)} ± ${percent(eachStd)}`;
  return [name, bits.toFixed(2), ...figures, percent(relative), each];
}

/** Mean errors, a column a format, and that of the first as a share of the last. */
function sideBySide(results: readonly Result[]): string {
  const last = results.at(-1)!;
  const head = ["mean error", ...results.map(({ name }) => name), `to ${last.name}`];
  const rows = last.error.tensors.map(({ name, mean: base }) => {
    const means = results.map(({ error }) =>
      error.tensors.find((tensor) => tensor.name === name)?.mean
    );
    const ratio = means[0] === undefined || base === 0 ? "" : (means[0] / base).toFixed(3);
    return [name, ...means.map((mean) => mean?.toExponential(3) ?? ""), ratio];
  });
  return showTable([head, ...rows], head.map((_, column) => column).slice(1)) + "\n";
}

/** Mean errors by tensor, a series a format. */
export function errorPlot(model: string, results: readonly Result[]): Plot {
  const labels = [
    ...new Set(results.flatMap(({ error }) => error.tensors.map(({ name }) => name))),
  ];
  const series = results.map(({ name, error }) => {
    const means = new Map(error.tensors.map((tensor) => [tensor.name, tensor.mean]));
    return { name, values: labels.map((label) => means.get(label) ?? 0) };
  });
  const title = `Errors of weights: ${model.split(/[/\\]/).at(-1)}`;
  return { title, unit: "mean magnitude of the error", kind: "bars", labels, series };
}
