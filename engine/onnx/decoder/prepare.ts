// From ONNX files to plans: roles of inputs, one derived graph a file, sizes, facts. Nothing of the weights is
// read beyond what shapes depend on, so the same steps describe a model that is not going to be loaded.

import { UnsupportedError } from "../../errors.ts";
import type { OnnxFile } from "../file/onnx_file.ts";
import type { Plan } from "../../plan/plan.ts";
import type { Device } from "../../run/devices.ts";
import type { ResolvedLimits } from "../../decode/load_options.ts";
import { totalMemory } from "../../decode/memory.ts";
import type { LoadOptions, ModelDescription } from "../../decode/model.ts";
import type { WordHeads } from "../../decode/runtime.ts";
import { readAlignmentHeads } from "../../formats/media/speech_config.ts";
import { weightTensors } from "../../decode/describe.ts";
import { type DecoderConfig, readDecoderConfig } from "./config.ts";
import { describeDecoder } from "./facts.ts";
import { largestStep, limitsOf, logitsOf } from "./limits.ts";
import { replaceKnown } from "./known_inputs.ts";
import { LOOK_NAME } from "./port_names.ts";
import { blocksOf, type DecoderPorts, portsOf, takesOneToken } from "./ports.ts";
import { type SoundShape, soundShapeOf } from "./source.ts";
import { type DerivedStage, deriveStage, planStage } from "./stage.ts";
import { checkPadding } from "./step_sizes.ts";

/** A decoder ready to be loaded. */
export interface PreparedDecoder extends ModelDescription {
  readonly stages: readonly { readonly derived: DerivedStage; readonly plan: Plan }[];
  /** All files together. */
  readonly plan: Plan;
  readonly limits: ResolvedLimits;
  readonly vocabulary: number;
  readonly padTo: number;
  /** Tokens whose logits are known; undefined: all. */
  readonly candidates: number | undefined;
  readonly config: DecoderConfig;
  /** What its encoder takes and gives, if it has one. */
  readonly sound: SoundShape | undefined;
  /** By which looks at the sound words are timed, if they are. */
  readonly words: WordHeads | undefined;
}

const DEFAULT_PADDING = 64;

/**
 * Plans a decoder.
 *
 * @throws {UnsupportedError} If the files are no decoder, or an option is not served for ONNX.
 * @throws {RangeError} If the context is longer than the files allow.
 */
export async function prepareDecoder(
  file: OnnxFile,
  { options, device }: { readonly options: LoadOptions; readonly device: Device },
): Promise<PreparedDecoder> {
  refuseOptions(file, options);
  const config = await readDecoderConfig(file);
  const precision = options.precision ?? "fast";
  const sound = file.source && soundShapeOf(file.source.encoder);
  const parts = file.models.map((model) => ({ model, ports: portsOf(model, sound?.positions) }));
  checkChain(file, parts.map(({ ports }) => ports));
  const words = options.words && sound
    ? await wordHeads(file, { ports: parts.at(-1)!.ports, positions: sound.positions })
    : undefined;
  const isBranching = parts.some(({ ports }) => ports.useCache);
  const oneToken = isBranching || file.oneTokenSteps ||
    parts.some(({ ports }) => ports.tokens && takesOneToken(ports.tokens));
  const derived = parts.map((part) => {
    const { model, ports } = replaceKnown(part.model, part.ports);
    return deriveStage(model, ports, {
      oneToken,
      rowsOf: ports.caches.length > 0 && part === parts.at(-1) ? ports.result : undefined,
      results: [
        ...ports.result !== undefined
          ? [ports.result]
          : [ports.best!.ids, ...ports.best!.values === undefined ? [] : [ports.best!.values]],
        ...words ? ports.looks : [],
      ],
      device,
      passes: {
        precision,
        hasKernel: (op) => device.hasKernel(op),
        takes: (draft) => device.takes(draft),
        // Seven bits are not enough for a model that is fed its own output (quant/int7_groups.ts).
        roundsWeights: false,
      },
    });
  });
  const cached = derived.filter(({ ports }) => ports.caches.length > 0);
  const leading = cached[0]!.ports;
  cached.forEach(({ ports }) => checkPadding(ports, options.padTo));
  const padTo = options.padTo ?? (leading.past === "exact" ? 1 : DEFAULT_PADDING);
  const limits = limitsOf({ file, options, config, derived, padTo, oneToken });
  const { vocabulary, rowsOfLogits, best } = logitsOf(derived, config, { file, oneToken });
  const logitRows = rowsOfLogits === "last" ? 1 : limits.logitRows;
  const largest = { ...largestStep(leading, { pick: limits, padTo }), wanted: logitRows };
  const tail = derived.findLastIndex(({ ports }) => ports.caches.length > 0) + 1;
  const stages = derived.map((stage, i) => ({
    derived: stage,
    plan: planStage(stage, i < tail ? largest : { rows: logitRows, length: 0, held: 0 }),
  }));
  const plan = joinPlans(stages.map(({ plan }) => plan));
  const resolved = { ...limits, precision, logitRows };
  const memory = totalMemory({
    weights: bytesOf(derived),
    activations: plan.arenaBytes,
    sessionCache: cacheBytes(cached, limits.contextLength),
    cache: cacheBytes(cached, limits.cacheTokens),
    cacheTokens: limits.cacheTokens,
    sessions: limits.sessions,
    other: 0,
  });
  const warnings = [
    ...config.warnings,
    ...isBranching
      ? [
        "the file has a branch for its first step, which is left out: prompts are read token by token",
      ]
      : oneToken
      ? ["the graph was exported for steps of one token: prompts are read token by token"]
      : [],
    ...best !== undefined
      ? [`the file gives out the best ${best} tokens, not all logits: samplers choose among them`]
      : [],
  ];
  const info = describeDecoder({
    file,
    config,
    cached,
    derived,
    limits: resolved,
    vocabulary,
    warnings,
  });
  return {
    ...{ info, memory, plan, stages, limits: resolved, vocabulary, padTo, config, sound, words },
    candidates: best,
  };
}

/** @throws {UnsupportedError} If the decoder does not give out what it looks at. */
async function wordHeads(
  file: OnnxFile,
  { ports: { looks, memory }, positions }: {
    readonly ports: DecoderPorts;
    readonly positions: number;
  },
): Promise<WordHeads> {
  const heads = memory[0]?.dims[1];
  if (looks.length === 0 || typeof heads !== "number") throw noWords(file.name);
  return {
    heads: await readAlignmentHeads(file, { layers: looks.length, heads }),
    ...{ looks, headCount: heads, keyHeadCount: heads, headDim: positions, scale: 1 },
  };
}

function noWords(file: string): UnsupportedError {
  const remedy = `Leave words out, or export the decoder with outputs ${
    LOOK_NAME.replace("#", "0")
  }, …`;
  return new UnsupportedError(
    "option words is not for this ONNX model: its files do not give out what the decoder sees of the sound",
    { file, remedy },
  );
}

function refuseOptions({ name: file, source }: OnnxFile, options: LoadOptions): void {
  if (options.words && !source) throw noWords(file);
  const refused: [keyof LoadOptions, string][] = [
    ["adapters", "adapters are applied to models built from specs"],
    ["kvHeads", "heads are pooled in models built from specs"],
    ["cacheTokens", "every session has caches of its own"],
    ["spec", "the file itself says how it is built"],
    ["embeddings", "its files give out no hidden state"],
  ];
  for (const [option, reason] of refused) {
    const value = options[option];
    if (value === undefined || value === false || (Array.isArray(value) && value.length === 0)) {
      continue;
    }
    throw new UnsupportedError(`option ${option} is not for ONNX models: ${reason}`, {
      file,
      remedy: `Leave ${option} out`,
    });
  }
}

/** @throws {UnsupportedError} If the files do not make a decoder. */
function checkChain({ name: file }: OnnxFile, chain: readonly DecoderPorts[]): void {
  const caches = chain.flatMap((ports) => ports.caches);
  if (caches.length === 0) {
    throw new UnsupportedError(
      "cannot be a session: none of its inputs is a cache of keys or values",
      { file, remedy: "Export a decoder with past keys and values, or run it with loadGraph()" },
    );
  }
  for (const [i, ports] of chain.entries()) {
    if (ports.tokens || (i > 0 && ports.hidden)) {
      if (ports.result !== undefined || ports.best) continue;
      throw new UnsupportedError(
        "cannot be a session: it gives out neither logits nor hidden states",
        { file: ports.file, remedy: "Run it with loadGraph()" },
      );
    }
    throw new UnsupportedError(
      ports.hidden
        ? `takes hidden states ("${ports.hidden.name}"), and no file before it makes them of tokens`
        : "cannot be a session: no input takes token ids",
      { file: ports.file, remedy: "Put embeding.onnx beside it, or run it with loadGraph()" },
    );
  }
}

/** One plan that tells of all files. */
function joinPlans(plans: readonly Plan[]): Plan {
  const sum = (of: (plan: Plan) => number) => plans.reduce((total, plan) => total + of(plan), 0);
  const [first] = plans as [Plan];
  if (plans.length === 1) return first;
  let waves = 0;
  const steps = plans.flatMap((plan) => {
    const from = waves;
    waves += plan.waves;
    return plan.steps.map(({ node, wave }) => ({ node, wave: from + wave }));
  });
  return {
    ...first,
    steps,
    waves,
    arenaBytes: sum(({ arenaBytes }) => arenaBytes),
    naiveBytes: sum(({ naiveBytes }) => naiveBytes),
    lowerBoundBytes: sum(({ lowerBoundBytes }) => lowerBoundBytes),
  };
}

function bytesOf(derived: readonly DerivedStage[]): number {
  return derived.flatMap(({ graph }) => weightTensors(graph))
    .reduce((sum, { byteLength }) => sum + byteLength, 0);
}

function cacheBytes(cached: readonly DerivedStage[], capacity: number): number {
  return cached.flatMap(({ ports }) => ports.caches).reduce((sum, port) => {
    const { outer, inner } = blocksOf(port);
    return sum + outer * inner * capacity * (port.dtype === "f16" ? 2 : 4);
  }, 0);
}
