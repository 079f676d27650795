// `troodon quant-error`: how far number formats are from a model's weights.

import type { ModelError } from "../pipelines/quant_error.ts";
import { UsageError } from "./args.ts";
import { type Command, defineCommand } from "./command.ts";
import { SOURCE_FLAGS } from "./flags.ts";
import { showTable } from "./format.ts";

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
    tensors: { type: "boolean", help: "a line for every tensor" },
    ...SOURCE_FLAGS,
  },
  examples: [
    ["troodon quant-error model-f16.gguf --format e0m4 --format int4", "two formats side by side"],
    [
      "troodon quant-error model-f16.gguf model-q4.gguf --tensors",
      "what a quantised file has lost",
    ],
    ["troodon quant-error model-f16.gguf --format lf8 --json", "for scripts"],
  ],
  notes: [
    "max, min, mean and std are of the magnitudes of the errors; relative is the root mean square of the " +
    "errors over that of the weights. Norms and biases are left out.",
  ],
}, async (context, { positionals: [name, other], flags }) => {
  const { terminal, signal } = context;
  const formats = flags.format ?? [];
  if ((formats.length > 0) === (other !== undefined)) {
    throw new UsageError("Give either OTHER or --format");
  }
  const { choosePolicy } = await import("./quant_policy.ts");
  const policies = await Promise.all(formats.map((format) => choosePolicy(format, undefined)));
  const { fetchModel } = await import("./fetch.ts");
  const { openModel } = await import("../formats/open_model.ts");
  const { fileError, policyError } = await import("../pipelines/quant_error.ts");
  const options = { signal, ...flags.levels && { levels: flags.levels } };
  const file = await openModel(await fetchModel(name, flags, context));
  const results: { name: string; error: ModelError }[] = [];
  try {
    for (const policy of policies) {
      results.push({ name: policy.name, error: await policyError(file, policy, options) });
    }
    if (other !== undefined) {
      const twin = await openModel(await fetchModel(other, flags, context));
      try {
        results.push({ name: other, error: await fileError(file, twin, options) });
      } finally {
        twin.close();
      }
    }
  } finally {
    file.close();
  }
  if (flags.json) {
    for (const { name: format, error } of results) {
      terminal.out(JSON.stringify({ model: name, format, ...error }) + "\n");
    }
    return 0;
  }
  const rows = results.flatMap(({ name: format, error }) => [
    ...(flags.tensors ? error.tensors.map((tensor) => row(tensor.name, tensor.bits, tensor)) : []),
    row(format, error.bits, error.total),
  ]);
  const head = ["", "bits", "max", "min", "mean", "std", "relative"];
  terminal.out(showTable([head, ...rows], [1, 2, 3, 4, 5, 6]) + "\n");
  return 0;
});

function row(name: string, bits: number, error: ModelError["total"]): string[] {
  const { max, min, mean, std, relative } = error;
  const figures = [max, min, mean, std].map((value) => value.toExponential(2));
  return [name, bits.toFixed(2), ...figures, `${(relative * 100).toPrecision(3)} %`];
}
