// Writes small decoders in the forms that exporters give language models (spec TL-15): where the past lies,
// what a mask is, which rows have logits, one file or several. Two layers of two heads, no norms; weights are
// a seed. What one of them computes is asked of loadGraph(), which is fed the past by hand.

import {
  floats,
  type GraphParts,
  longs,
  type NodeParts,
  type Port,
  type Tensor,
  writeOnnx,
} from "./write_onnx.ts";

/** Where positions stand in a cache, by layout. */
export type CacheLayout = "heads first" | "rows first" | "rows outermost" | "keys across";

/** A decoder to write. */
export interface DecoderForm {
  /** Default `heads first`: [1, h, past, d]; [1, past, h, d]; [past, 1, h, d]; keys [h, d, past]. */
  readonly layout?: CacheLayout;
  /**
   * Default `added`: 0 and −65504; `hidden`: true hides; `seen`: [1, total], with cache_position; `counted`:
   * none, GroupQueryAttention is told the number of keys.
   */
  readonly mask?: "added" | "hidden" | "seen" | "counted";
  /** Logits of the last row alone. */
  readonly lastOnly?: boolean;
  /** Gives out the best ids, and their logits, instead of all logits. */
  readonly best?: number;
  /** All keys, then all values. */
  readonly keysFirst?: boolean;
  /** Names: the export scripts', or Optimum's. */
  readonly names?: "past_key_in" | "past_key_values";
  /** An input that nobody knows. */
  readonly extraInput?: string;
  /** Name of the dim of sequences; without it is 1. */
  readonly batch?: string;
  /** Declares one token a step. */
  readonly oneToken?: boolean;
}

export const VOCABULARY = 11;
export const POSITIONS = 40;
const HEADS = 2, WIDTH = 2, HIDDEN = HEADS * WIDTH, LAYERS = 2;
const FLOAT = 1, INT = 6, LONG = 7, BOOL = 9;
const OPSETS = { "": 17, "com.microsoft": 1 };

/** One whole decoder. */
export function writeDecoder(form: DecoderForm = {}): Uint8Array {
  const names = Array.from({ length: LAYERS }, (_, layer) => layer);
  const layers = names.flatMap((layer) => layerNodes(form, layer, `h${layer}`, `h${layer + 1}`));
  return writeOnnx(
    graphOf(form, {
      nodes: [...embedding("input_ids"), ...layers, ...head(form, `h${LAYERS}`)],
      inputs: [["input_ids", LONG, [form.batch ?? 1, rowsOf(form)]]],
      outputs: outputsOf(form),
      layers: names,
    }),
    { opsets: OPSETS },
  );
}

/** The same in files: embeding, decoders_0, decoders_1, norm, lm_head; cache names begin at 0 in each. */
export function writeSplitDecoder(form: DecoderForm = {}): Readonly<Record<string, Uint8Array>> {
  const hidden = (name: string): Port => [name, FLOAT, [1, "N", HIDDEN]];
  const weights = weightTensors();
  const only = (...names: string[]) => weights.filter(({ name }) => names.includes(name!));
  const decoders = Array.from({ length: LAYERS }, (_, layer) => [
    `decoders_${layer}.onnx`,
    writeOnnx(graphOf(form, {
      nodes: [
        ...layer === 0 ? positionNodes("hidden_in", "x") : [rename("hidden_in", "x")],
        ...layerNodes({ ...form }, layer, "x", "hidden_out", 0),
      ],
      inputs: [hidden("hidden_in")],
      outputs: [hidden("hidden_out")],
      layers: [0],
    })),
  ]);
  return Object.fromEntries([
    [
      "embeding.onnx",
      writeOnnx({
        nodes: [{ op: "Gather", inputs: ["tokens", "input"], outputs: ["output"] }],
        inputs: [["input", LONG, [1, "N"]]],
        outputs: [hidden("output")],
        initializers: only("tokens"),
      }),
    ],
    ...decoders,
    [
      "norm.onnx",
      writeOnnx({
        nodes: [rename("input", "output")],
        inputs: [hidden("input")],
        outputs: [hidden("output")],
        initializers: constantTensors().filter(({ name }) => name === "one"),
      }),
    ],
    [
      "lm_head.onnx",
      writeOnnx({
        nodes: [{ op: "MatMul", inputs: ["input", "head"], outputs: ["output"] }],
        inputs: [hidden("input")],
        outputs: [["output", FLOAT, [1, "N", VOCABULARY]]],
        initializers: only("head"),
      }),
    ],
  ]);
}

/** A decoder whose branch without a past serves its first step (Optimum's merged files). */
export function writeMergedDecoder(): Uint8Array {
  const form: DecoderForm = { names: "past_key_values" };
  const names = Array.from({ length: LAYERS }, (_, layer) => layer);
  const branch = (isFirst: boolean, mark: string): GraphParts => {
    const layers = names.flatMap((layer) =>
      layerNodes(form, layer, `h${layer}`, `h${layer + 1}`, layer, isFirst)
    );
    const nodes = [...embedding("input_ids"), ...layers, ...head(form, `h${LAYERS}`)];
    const own = (name: string) => nodes.some(({ outputs }) => outputs.includes(name));
    const outputs = [["logits", FLOAT, []] as Port, ...presentPorts(form, names)];
    return {
      nodes: nodes.map((node) => ({
        ...node,
        inputs: node.inputs.map((name) => own(name) ? mark + name : name),
        outputs: node.outputs.map((name) => mark + name),
      })),
      inputs: [],
      outputs: outputs.map(([name, type]) => [mark + name, type, []]),
    };
  };
  const outputs = [...outputsOf(form), ...presentPorts(form, names)];
  const whole = graphOf(form, {
    nodes: [{
      op: "If",
      inputs: ["use_cache_branch"],
      outputs: outputs.map(([name]) => name),
      attributes: {
        then_branch: { g: branch(false, "then_") },
        else_branch: { g: branch(true, "else_") },
      },
    }],
    inputs: [["input_ids", LONG, [1, "N"]], ["use_cache_branch", BOOL, [1]]],
    outputs: outputsOf(form),
    layers: names,
  });
  return writeOnnx(whole);
}

function graphOf(
  form: DecoderForm,
  { nodes, inputs, outputs, layers }: {
    readonly nodes: readonly NodeParts[];
    readonly inputs: readonly Port[];
    readonly outputs: readonly Port[];
    readonly layers: readonly number[];
  },
): GraphParts {
  const all = [...inputs, ...stepPorts(form), ...pastPorts(form, layers)];
  const used = new Set(JSON.stringify(nodes).match(/"[^"]+"/g)!.map((text) => text.slice(1, -1)));
  return {
    nodes,
    inputs: all.filter(([name]) => used.has(name) || name === form.extraInput),
    outputs: [...outputs, ...presentPorts(form, layers)],
    initializers: [...weightTensors(), ...constantTensors()].filter(({ name }) => used.has(name!)),
  };
}

function rowsOf({ oneToken }: DecoderForm): number | string {
  return oneToken ? 1 : "N";
}

function stepPorts(form: DecoderForm): Port[] {
  const { mask = "added", extraInput, batch: many } = form;
  const batch = many ?? 1, rows = rowsOf(form);
  const masks: Readonly<Record<string, Port>> = {
    added: ["attention_mask", FLOAT, [batch, 1, rows, "sumN"]],
    hidden: ["attention_mask", BOOL, [batch, 1, rows, "sumN"]],
    seen: ["attention_mask", LONG, [batch, "sumN"]],
  };
  return [
    ...mask === "counted" ? [] : [masks[mask]!],
    ["seqlens_k", INT, [batch]],
    ["total_sequence_length", INT, []],
    ["position_ids", LONG, [batch, rows]],
    ["cache_position", LONG, [rows]],
    ...extraInput ? [[extraInput, FLOAT, [1, 3]] as Port] : [],
  ];
}

function outputsOf(form: DecoderForm): Port[] {
  const { lastOnly, best, names, batch: many } = form;
  const batch = many ?? 1;
  const rows = lastOnly ? 1 : rowsOf(form);
  if (best === undefined) {
    const name = names === "past_key_values" ? "logits" : "lm_logits";
    return [[name, FLOAT, [batch, rows, VOCABULARY]]];
  }
  return [
    ["logits_topk_value", FLOAT, [batch, rows, best]],
    ["logits_topk_idx", LONG, [batch, rows, best]],
  ];
}

/** Name of a cache before and after a step. */
function cacheNames({ names = "past_key_in" }: DecoderForm, part: "key" | "value", layer: number) {
  return names === "past_key_in"
    ? { past: `past_${part}_in${layer}`, present: `past_${part}${layer}` }
    : { past: `past_key_values.${layer}.${part}`, present: `present.${layer}.${part}` };
}

/** Sizes of a cache with so many rows. */
export function cacheDims<T extends number | string>(
  { layout = "heads first", batch }: DecoderForm,
  part: "key" | "value",
  rows: T,
): (number | string | T)[] {
  const one = batch ?? 1;
  if (layout === "heads first") return [one, HEADS, rows, WIDTH];
  if (layout === "rows first") return [one, rows, HEADS, WIDTH];
  if (layout === "rows outermost") return [rows, one, HEADS, WIDTH];
  return part === "key" ? [HEADS, WIDTH, rows] : [HEADS, rows, WIDTH];
}

function cachePorts(
  form: DecoderForm,
  layers: readonly number[],
  which: "past" | "present",
): Port[] {
  const port = (part: "key" | "value", layer: number): Port => [
    cacheNames(form, part, layer)[which],
    FLOAT,
    cacheDims(form, part, which === "past" ? "lastSum" : `rows_of_${part}${layer}`),
  ];
  return form.keysFirst
    ? (["key", "value"] as const).flatMap((part) => layers.map((layer) => port(part, layer)))
    : layers.flatMap((layer) => [port("key", layer), port("value", layer)]);
}

function pastPorts(form: DecoderForm, layers: readonly number[]): Port[] {
  return cachePorts(form, layers, "past");
}

function presentPorts(form: DecoderForm, layers: readonly number[]): Port[] {
  return cachePorts(form, layers, "present");
}

function embedding(ids: string): NodeParts[] {
  return [
    { op: "Gather", inputs: ["tokens", ids], outputs: ["embedded"] },
    ...positionNodes("embedded", "h0"),
  ];
}

function positionNodes(from: string, to: string): NodeParts[] {
  return [
    { op: "Gather", inputs: ["positions", "position_ids"], outputs: ["placed"] },
    { op: "Add", inputs: [from, "placed"], outputs: [to] },
  ];
}

function rename(from: string, to: string): NodeParts {
  return { op: "Mul", inputs: [from, "one"], outputs: [to] };
}

function layerNodes(
  form: DecoderForm,
  weights: number,
  from: string,
  to: string,
  cache = weights,
  isFirst = false,
): NodeParts[] {
  const { layout = "heads first" } = form;
  if (form.mask === "counted") return groupedNodes(form, weights, from, to);
  const nodes: NodeParts[] = [];
  const at = (name: string) => `${to}/${name}`;
  const add = (
    op: string,
    inputs: string[],
    output: string,
    attributes: NodeParts["attributes"] = {},
  ) => {
    nodes.push({ op, inputs, outputs: [output], attributes });
    return output;
  };
  const turn = (value: string, perm: number[], output = at(`${value}/turned`)) =>
    add("Transpose", [value], output, { perm: { ints: perm } });
  const project = (part: string) => {
    const rows = add("MatMul", [from, `${part}${weights}`], at(`${part}/rows`));
    return add("Reshape", [rows, "split"], at(`${part}/split`)); // [1, N, h, d]
  };
  const cached = (part: "key" | "value"): string => {
    const { past, present } = cacheNames(form, part, cache);
    const split = project(part);
    // As the layout has it, behind the past, and back to [1, h, total, d].
    const forms: Readonly<Record<CacheLayout, () => [string, number]>> = {
      "heads first": () => [turn(split, [0, 2, 1, 3]), 2],
      "rows first": () => [split, 1],
      "rows outermost": () => [turn(split, [1, 0, 2, 3]), 0],
      "keys across": () => {
        const flat = add("Reshape", [split, "rows"], at(`${part}/flat`)); // [N, h, d]
        return part === "key" ? [turn(flat, [1, 2, 0]), 2] : [turn(flat, [1, 0, 2]), 1];
      },
    };
    const [rows, axis] = forms[layout]();
    if (isFirst) add("Mul", [rows, "one"], present);
    else add("Concat", [past, rows], present, { axis: { i: axis } });
    if (layout === "heads first") return present;
    if (layout === "rows first") return turn(present, [0, 2, 1, 3], at(`${part}/all`));
    if (layout === "rows outermost") return turn(present, [1, 2, 0, 3], at(`${part}/all`));
    const all = part === "key" ? turn(present, [0, 2, 1], at(`${part}/back`)) : present;
    return add("Unsqueeze", [all, "zero"], at(`${part}/all`));
  };
  const q = turn(project("query"), [0, 2, 1, 3], at("q"));
  const keys = turn(cached("key"), [0, 1, 3, 2], at("k"));
  const scores = masked(form, add("MatMul", [q, keys], at("scores")), at, add);
  const weightsOf = add("Softmax", [scores], at("weights"), { axis: { i: -1 } });
  const mixed = turn(
    add("MatMul", [weightsOf, cached("value")], at("heads")),
    [0, 2, 1, 3],
    at("mixed"),
  );
  add("Add", [from, add("Reshape", [mixed, "joined"], at("flat"))], to);
  return nodes;
}

function groupedNodes(form: DecoderForm, layer: number, from: string, to: string): NodeParts[] {
  const parts = ["query", "key", "value"].map((part): NodeParts => ({
    op: "MatMul",
    inputs: [from, `${part}${layer}`],
    outputs: [`${to}/${part}`],
  }));
  const caches = (["key", "value"] as const).map((part) => cacheNames(form, part, layer));
  return [...parts, {
    op: "GroupQueryAttention",
    domain: "com.microsoft",
    inputs: [
      ...parts.map(({ outputs }) => outputs[0]!),
      ...caches.map(({ past }) => past),
      "seqlens_k",
      "total_sequence_length",
    ],
    outputs: [`${to}/mixed`, ...caches.map(({ present }) => present)],
    attributes: { num_heads: { i: HEADS }, kv_num_heads: { i: HEADS }, scale: { f: 1 } },
  }, { op: "Add", inputs: [from, `${to}/mixed`], outputs: [to] }];
}

function masked(
  { mask = "added" }: DecoderForm,
  scores: string,
  at: (name: string) => string,
  add: (op: string, inputs: string[], output: string) => string,
): string {
  if (mask === "added") return add("Add", [scores, "attention_mask"], at("masked"));
  if (mask === "hidden") return add("Where", ["attention_mask", "low", scores], at("masked"));
  // Rows see keys that are there and not behind their own place.
  const total = add("Gather", [add("Shape", ["attention_mask"], at("shape")), "last"], at("total"));
  const keys = add("Range", ["start", total, "step"], at("keys"));
  const places = add("Unsqueeze", ["cache_position", "last_axis"], at("places"));
  const later = add("Greater", [keys, places], at("later"));
  const absent = add("Equal", ["attention_mask", "start"], at("absent"));
  return add("Where", [add("Or", [later, absent], at("unseen")), "low", scores], at("masked"));
}

function head({ lastOnly, best, names }: DecoderForm, from: string): NodeParts[] {
  const logits = names === "past_key_values" ? "logits" : "lm_logits";
  const rows: NodeParts[] = lastOnly
    ? [{ op: "Slice", inputs: [from, "minus_one", "far", "row_axis"], outputs: ["final"] }]
    : [{ op: "Mul", inputs: [from, "one"], outputs: ["final"] }];
  return [
    ...rows,
    { op: "MatMul", inputs: ["final", "head"], outputs: [logits] },
    ...best === undefined ? [] : [{
      op: "TopK",
      inputs: [logits, `best${best}`],
      outputs: ["logits_topk_value", "logits_topk_idx"],
    }],
  ];
}

// A reproducible number in −1…1 for an index.
function noise(seed: number): number {
  const x = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b);
  return ((x ^ (x >>> 13)) | 0) / 2 ** 31;
}

function matrix(name: string, rows: number, columns: number, seed: number): Tensor {
  const numbers = Array.from({ length: rows * columns }, (_, i) => noise(seed * 1009 + i * 31 + 7));
  return { name, type: FLOAT, dims: [rows, columns], raw: floats(...numbers) };
}

function weightTensors(): Tensor[] {
  return [
    matrix("tokens", VOCABULARY, HIDDEN, 1),
    matrix("positions", POSITIONS, HIDDEN, 2),
    matrix("head", HIDDEN, VOCABULARY, 3),
    ...Array.from(
      { length: LAYERS },
      (_, layer) =>
        ["query", "key", "value"].map((part, i) =>
          matrix(`${part}${layer}`, HIDDEN, HIDDEN, 10 + 3 * layer + i)
        ),
    ).flat(),
  ];
}

function constantTensors(): Tensor[] {
  const integers = (name: string, values: number[], dims = [values.length]): Tensor => ({
    name,
    type: LONG,
    dims,
    raw: longs(...values),
  });
  const number = (name: string, value: number): Tensor => ({
    name,
    type: FLOAT,
    dims: [],
    raw: floats(value),
  });
  return [
    number("one", 1),
    number("low", -65504),
    integers("split", [0, 0, HEADS, WIDTH]),
    integers("rows", [-1, HEADS, WIDTH]),
    integers("joined", [0, 0, HIDDEN]),
    integers("zero", [0]),
    integers("last", [1], []),
    integers("start", [0], []),
    integers("step", [1], []),
    integers("last_axis", [1]),
    integers("minus_one", [-1]),
    integers("far", [2 ** 31]),
    integers("row_axis", [1]),
    integers("best1", [1]),
    integers("best3", [3]),
  ];
}
