// `troodon run --config FILE`, also `troodon --config FILE`: does what an Inferflow configuration says. llm_inference.ini
// answers its queries, perplexity.ini measures, inferflow_client.ini sends its request.

import { FormatError, UnsupportedError } from "../../errors.ts";
import type { IniFile } from "../../formats/ini/ini.ts";
import type { LoadOptions, Model } from "../../decode/model.ts";
import type { EngineConfig } from "../../inferflow/engine_config.ts";
import type { InferenceConfig, InferflowQuery } from "../../inferflow/queries.ts";
import { streamAnswer } from "../answer.ts";
import { UsageError } from "../args.ts";
import { type Command, type Context, defineCommand } from "../command.ts";
import { paint } from "../format.ts";

/** The command. */
export const run: Command = defineCommand({
  name: "troodon run",
  summary: "Does what an Inferflow configuration (.ini) says.",
  positionals: ["[FILE]"],
  flags: {
    config: {
      type: "string",
      value: "FILE",
      help: "llm_inference.ini, perplexity.ini or a client's",
    },
  },
  examples: [
    ["troodon run --config llm_inference.ini", "answer the configuration's list of queries"],
    ["troodon --config perplexity.ini --json", "the perplexity that it asks for"],
  ],
  notes: [
    "FILE is the same as --config FILE. Keys that are not known, or have no meaning here, are named on standard error.",
  ],
}, async (context, { positionals: [given], flags }) => {
  if (given?.endsWith(".onnx")) {
    throw new UsageError(
      "troodon run is for Inferflow's configurations: a script runs a graph, by loadGraph()",
    );
  }
  if (given !== undefined && flags.config !== undefined) {
    throw new UsageError(`the file is given twice, as --config and as "${given}"`);
  }
  const path = flags.config ?? given;
  if (path === undefined) throw new UsageError("troodon run needs --config FILE");
  const { readIni } = await import("../../formats/ini/read_ini.ts");
  const { configKind } = await import("../../inferflow/small_configs.ts");
  const file = await readIni(path);
  const kind = configKind(file);
  if (kind === undefined) {
    throw new FormatError("is no configuration of Inferflow's that is known", {
      file: file.name,
      remedy: "Give a file with [main] query_list, test_data_file or request",
    });
  }
  const warnings = new Set<string>();
  const input = { file, warnings, json: flags.json ?? false, context };
  return await RUNNERS[kind](input);
});

interface RunInput {
  readonly file: IniFile;
  readonly warnings: Set<string>;
  readonly json: boolean;
  readonly context: Context;
}

const RUNNERS = {
  inference: answerQueries,
  perplexity: measure,
  client: send,
  engine: ({ file }: RunInput): Promise<number> => {
    throw new UnsupportedError("configures an engine, and says nothing to do", {
      file: file.name,
      remedy: "Give a file whose [main] names it as inference_engine_config",
    });
  },
};

function tell({ warnings, context: { terminal } }: RunInput): void {
  const label = paint(terminal.colours.err, { style: "yellow", text: "warning:" });
  for (const warning of warnings) terminal.err(`${label} ${warning}\n`);
  warnings.clear();
}

async function openEngine(path: string, input: RunInput): Promise<EngineConfig> {
  const { readIni } = await import("../../formats/ini/read_ini.ts");
  const { readEngineConfig } = await import("../../inferflow/engine_config.ts");
  const engine = await readEngineConfig(await readIni(path), input.warnings);
  tell(input);
  return engine;
}

/** Loads the model of a configuration, its weights rounded first where that is asked for. */
async function loadEngine(
  { path, load: options, weights }: EngineConfig,
  more: LoadOptions,
  { warnings, context: { signal } }: RunInput,
): Promise<Model> {
  const { load } = await import("../../models/load.ts");
  const work = (file: string) => load(file, { ...options, ...more, signal });
  if (!weights) return await work(path);
  const { withRoundedWeights } = await import("../../inferflow/device_weights.ts");
  const { pullModel } = await import("../../formats/hub/pull.ts");
  return await withRoundedWeights(await pullModel(path, { signal }), weights, {
    ...{ signal, warnings, work },
  });
}

async function answerQueries(input: RunInput): Promise<number> {
  const { context: { terminal, signal } } = input;
  const { readInferenceConfig } = await import("../../inferflow/queries.ts");
  const inference = readInferenceConfig(input.file, input.warnings);
  const engine = await openEngine(inference.engine, input);
  const { queries } = inference;
  const sessions = Math.max(1, Math.min(engine.load.sessions ?? 1, queries.length));
  using model = await loadEngine(engine, { sessions }, input);
  for (const warning of model.info.warnings) input.warnings.add(warning);
  tell(input);
  if (model.info.network === "encoder") return await fillMasks(model, queries, input);
  const { askModel } = await import("../../inferflow/ask.ts");
  const ask = (query: InferflowQuery) =>
    askModel(model, { config: engine, query }, { ...inference, signal });
  if (queries.length === 1 && !input.json) {
    showQuery(queries[0]!, 0, input);
    await streamAnswer(terminal, ask(queries[0]!));
    signal.throwIfAborted();
    return 0;
  }
  // Side by side, as far as there are sessions; shown in the order of the list.
  const results = queries.map((query) => ask(query).result);
  results.forEach((result) => result.catch(() => {}));
  for (const [index, result] of results.entries()) {
    showAnswer(queries[index]!, index, await result, { input, inference });
  }
  signal.throwIfAborted();
  return 0;
}

function showQuery({ text, answer }: InferflowQuery, index: number, { context }: RunInput): void {
  const { terminal } = context;
  const title = `Query ${index + 1}: ${text}${answer === "" ? "" : ` / ${answer}`}`;
  terminal.err(paint(terminal.colours.err, { style: "dim", text: title }) + "\n");
}

function showAnswer(
  query: InferflowQuery,
  index: number,
  result: { readonly text: string; readonly ids: readonly number[]; readonly finishReason: string },
  { input, inference }: { input: RunInput; inference: InferenceConfig },
): void {
  const { terminal } = input.context;
  if (!input.json) {
    showQuery(query, index, input);
    terminal.out(`${result.text}\n${index + 1 < inference.queries.length ? "\n" : ""}`);
    return;
  }
  const { text, ids, finishReason } = result;
  terminal.out(`${JSON.stringify({ query: query.text, text, ids, finishReason })}\n`);
}

async function fillMasks(
  model: Model,
  queries: readonly InferflowQuery[],
  input: RunInput,
): Promise<number> {
  const { fillMask } = await import("../../pipelines/fill_mask.ts");
  const { context: { terminal, signal }, json } = input;
  for (const [index, { text }] of queries.entries()) {
    const masks = await fillMask(model, text, { signal });
    if (json) terminal.out(`${JSON.stringify({ query: text, masks })}\n`);
    else {
      showQuery(queries[index]!, index, input);
      for (const candidates of masks) {
        const shown = candidates.map(({ token, probability }) =>
          `${token} ${probability.toFixed(4)}`
        );
        terminal.out(`${shown.join("  ")}\n`);
      }
    }
  }
  signal.throwIfAborted();
  return 0;
}

async function measure(input: RunInput): Promise<number> {
  const { context: { terminal, signal }, json } = input;
  const { readPerplexityConfig } = await import("../../inferflow/small_configs.ts");
  const { readTextFile } = await import("../../formats/ini/read_ini.ts");
  const { perplexity } = await import("../../pipelines/perplexity.ts");
  const { engine: path, data, window, stride } = readPerplexityConfig(input.file, input.warnings);
  const engine = await openEngine(path, input);
  const text = await readTextFile(data);
  using model = await loadEngine(engine, { sessions: 1, logitRows: 32 }, input);
  tell(input);
  const { windows, ...rest } = await perplexity(model, text, { window, stride, signal });
  if (json) terminal.out(`${JSON.stringify({ ...rest, windows: windows.length })}\n`);
  else {
    const { perplexity: value, standardError, scored } = rest;
    terminal.out(
      `perplexity ${value.toFixed(4)} ± ${standardError.toFixed(4)}, ${scored} tokens\n`,
    );
  }
  return 0;
}

async function send(input: RunInput): Promise<number> {
  const { readClientConfig } = await import("../../inferflow/small_configs.ts");
  const { sendRequest } = await import("./client.ts");
  const { service, request } = readClientConfig(input.file, input.warnings);
  tell(input);
  return await sendRequest(input.context, { service, request, json: input.json });
}
