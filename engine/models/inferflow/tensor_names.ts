// Tensor names of a file, by Inferflow's rules [IF-4]: a map from the file's names to standard ones, `{i}` the layer and
// `{j}` the expert; each type of network has a built-in map, and the spec's own counts before it. A name of the map
// may or may not have the prefix in the file; which one is settled by looking, so every name that comes out
// of here exists.

import { FormatError } from "../../errors.ts";
import tables from "./names.json" with { type: "json" };

/** Names in a layer by what they begin with, and what stands behind `dec.{i}.` of the standard. */
const { layers } = tables;

const both = (source: string, target: string): [string, string][] => [
  [`${source}.weight`, `${target}.weight`],
  [`${source}.bias`, `${target}.bias`],
];

const HEADS: readonly [string, string][] = [
  ...both("lm_head", "output"),
  ...both("output", "output"),
];

const EMBEDDINGS: readonly [string, string][] = [
  ...["embed_tokens", "tok_embeddings", "word_embeddings", "token_embd", "shared"].map((name) =>
    [`${name}.weight`, "dec.token_embeddings.weight"] as [string, string]
  ),
];

/** @param outer In front of `start`, in files whose reader gives names of its own (llama2.c). */
function layerNames(start: keyof typeof layers, outer = ""): [string, string][] {
  return Object.entries(layers[start]).flatMap(([source, target]) =>
    both(outer + start + source, `dec.{i}.${target}`)
  );
}

/** Layers of one half of an encoder-decoder. */
function halfNames(outer: string, half: string): [string, string][] {
  const attention = (source: string, target: string) => [
    ...both(`${outer}layers.{i}.${source}_layer_norm`, `${half}.{i}.${target}.pre_norm`),
    ...["qkv:qkv", "q_proj:wq", "k_proj:wk", "v_proj:wv", "out_proj:wo"].flatMap((pair) => {
      const [from, to] = pair.split(":");
      return both(`${outer}layers.{i}.${source}.${from}`, `${half}.{i}.${target}.${to}`);
    }),
  ];
  return [
    ...attention("self_attn", "self_attn"),
    ...half === "dec" ? attention("encoder_attn", "cross_attn") : [],
  ];
}

/** Built-in maps by their name. */
const BUILT_IN: Readonly<
  Record<
    "decoder_only" | "llama" | "bloom" | "encoder_only" | "encoder_decoder",
    readonly [string, string][]
  >
> = {
  encoder_only: HEADS,
  encoder_decoder: [
    ["shared.weight", "dec.token_embeddings.weight"],
    ["decoder.embed_tokens.weight", "dec.token_embeddings.weight"],
    ["encoder.embed_tokens.weight", "dec.token_embeddings.weight"],
    ...HEADS,
    ...halfNames("encoder.", "enc"),
    ...halfNames("decoder.", "dec"),
  ],
  decoder_only: [...EMBEDDINGS, ...HEADS, ...layerNames("layers.{i}.")],
  llama: [
    ...EMBEDDINGS,
    ...HEADS,
    ...both("norm", "dec.output_norm"),
    ...both("output_norm", "dec.output_norm"),
    ...layerNames("layers.{i}."),
    ...layerNames("{i}."),
    ...layerNames("{i}.", "blk."),
  ],
  bloom: [
    ...EMBEDDINGS,
    ...HEADS,
    ...both("word_embeddings_layernorm", "dec.input_norm"),
    ...both("norm", "dec.input_norm"),
    ...both("ln_f", "dec.output_norm"),
    ...both("output_norm", "dec.output_norm"),
    ...layerNames("h.{i}."),
    ...layerNames("layers.{i}."),
  ],
};

/** What names are looked up in. */
export interface NameOptions {
  readonly builtIn: keyof typeof BUILT_IN;
  readonly prefix: string;
  /** The spec's own map. */
  readonly own: Readonly<Record<string, string>>;
  /** Tensors of the file. */
  readonly tensors: ReadonlyMap<string, unknown>;
  /** For messages. */
  readonly file: string;
}

/**
 * Names in the file by standard name, both with `{i}` and `{j}`.
 *
 * @throws {FormatError} If the spec's map names a tensor that the file has not; biases may be absent.
 */
export function resolveNames(
  { builtIn, prefix, own, tensors, file }: NameOptions,
): Map<string, string> {
  const all = [...tensors.keys()];
  const has = (name: string) => all.some(matcher(name));
  const find = (source: string) => [prefix + source, source].find(has);
  const names = new Map<string, string>();
  for (const [source, target] of BUILT_IN[builtIn]) {
    const found = find(source);
    const standard = standardName(target);
    if (found !== undefined && !names.has(standard)) names.set(standard, found);
  }
  const given = new Set<string>();
  for (const [source, target] of Object.entries(own)) {
    const place = `network_structure.tensor_name_mapping, "${source}"`;
    const found = find(source);
    // Maps name biases that some members of a family lack.
    if (found === undefined && source.endsWith(".bias")) continue;
    if (found === undefined) {
      throw new FormatError(
        prefix === ""
          ? `the model has no tensor ${source}`
          : `the model has neither ${prefix}${source} nor ${source}`,
        { file, place },
      );
    }
    const standard = standardName(builtIn === "encoder_only" ? ofOneStack(target) : target);
    if (given.has(standard)) {
      throw new FormatError(`is the second name of ${standard}`, { file, place });
    }
    given.add(standard);
    // One tensor has one meaning: what the built-in map made of it is forgotten.
    for (const [other, name] of names) if (name === found) names.delete(other);
    names.set(standard, found);
  }
  return names;
}

/** An encoder alone has the names of a decoder's stack. */
function ofOneStack(target: string): string {
  return target === "enc.output.bias" ? "output.bias" : target.replace(/^enc\./, "dec.");
}

function standardName(target: string): string {
  return /^(?:dec\.)?(?:token_embeddings|shared)\.weight$/.test(target)
    ? "dec.token_embeddings.weight"
    : target;
}

function matcher(name: string): (tensor: string) => boolean {
  if (!name.includes("{")) return (tensor) => tensor === name;
  const parts = name.split(/\{[ij]\}/).map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  const pattern = new RegExp(`^${parts.join("\\d+")}$`);
  return (tensor) => pattern.test(tensor);
}
