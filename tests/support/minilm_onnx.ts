// all-MiniLM-L6-v2 in float32 as an ONNX file, made from the checkpoint of the catalogue: no package that
// pip can fetch holds one. Nodes are those that PyTorch's exporter writes up to opset 16: layer norms and
// GELU are written out, heads are made by Reshape and Transpose with sizes from Shape. The mask is added
// to the scores as Optimum's files do.

import type { WeightFile } from "../../engine/formats/source.ts";
import {
  type Attribute,
  floats,
  longs,
  type NodeParts,
  type Tensor,
  writeOnnx,
} from "./write_onnx.ts";

const FLOAT = 1, LONG = 7;
const HEADS = 12, HEAD = 32, WIDTH = HEADS * HEAD, LAYERS = 6;

/** The bytes of the file. */
export async function miniLmOnnx({ tensors }: WeightFile): Promise<Uint8Array> {
  const nodes: NodeParts[] = [], initializers: Tensor[] = [];
  let count = 0;

  function add(
    op: string,
    inputs: readonly string[],
    attributes: Readonly<Record<string, Attribute>> = {},
    result = `v${count++}`,
  ): string {
    nodes.push({ op, inputs, outputs: [result], name: `${op}_${nodes.length}`, attributes });
    return result;
  }

  function constant(type: number, dims: readonly number[], raw: Uint8Array): string {
    const name = `c${count++}`;
    initializers.push({ name, type, dims, raw });
    return name;
  }
  const number = (value: number) => constant(FLOAT, [], floats(value));
  const list = (...values: number[]) => constant(LONG, [values.length], longs(...values));

  async function weight(name: string, transposed = false): Promise<string> {
    const info = tensors.get(name);
    if (!info) throw new TypeError(`the checkpoint has no ${name}`);
    const raw = new Uint8Array(info.byteLength);
    await info.source.readInto(info.offset, raw);
    const [rows = 1, columns = 1] = info.shape;
    const dims = transposed ? [columns, rows] : info.shape;
    initializers.push({
      name,
      type: FLOAT,
      dims,
      raw: transposed ? transpose(raw, rows, columns) : raw,
    });
    return name;
  }

  async function linear(x: string, name: string): Promise<string> {
    const product = add("MatMul", [x, await weight(`${name}.weight`, true)]);
    return add("Add", [await weight(`${name}.bias`), product]);
  }

  async function layerNorm(x: string, name: string, result?: string): Promise<string> {
    const axes = { axes: { ints: [-1] } };
    const centred = add("Sub", [x, add("ReduceMean", [x], axes)]);
    const square = add("Pow", [centred, number(2)]);
    const spread = add("Add", [add("ReduceMean", [square], axes), number(1e-12)]);
    const scaled = add("Div", [centred, add("Sqrt", [spread])]);
    const gained = add("Mul", [scaled, await weight(`${name}.weight`)]);
    return add("Add", [gained, await weight(`${name}.bias`)], {}, result);
  }

  function gelu(x: string): string {
    const erf = add("Erf", [add("Div", [x, number(Math.SQRT2)])]);
    return add("Mul", [add("Mul", [x, add("Add", [erf, number(1)])]), number(0.5)]);
  }

  // Sizes as the exporter takes them: one by one out of a Shape.
  function size(of: string, axis: number): string {
    const one = add("Gather", [add("Shape", [of]), constant(LONG, [], longs(axis))], {
      axis: { i: 0 },
    });
    return add("Unsqueeze", [one, list(0)]);
  }

  const tokens = await weight("embeddings.word_embeddings.weight");
  const types = await weight("embeddings.token_type_embeddings.weight");
  const positions = await weight("embeddings.position_embeddings.weight");
  const rows = add("Slice", [
    positions,
    list(0),
    size("input_ids", 1),
    list(0),
  ]);
  const summed = add("Add", [
    add("Gather", [tokens, "input_ids"]),
    add("Gather", [types, "token_type_ids"]),
  ]);
  let x = await layerNorm(add("Add", [summed, rows]), "embeddings.LayerNorm");
  const seen = add("Cast", [add("Unsqueeze", ["attention_mask", list(1, 2)])], {
    to: { i: FLOAT },
  });
  const mask = add("Mul", [add("Sub", [number(1), seen]), number(-3.4028234663852886e38)]);

  for (let layer = 0; layer < LAYERS; layer++) {
    const at = `encoder.layer.${layer}`;
    const heads = async (name: string, perm: readonly number[]): Promise<string> => {
      const y = await linear(x, `${at}.attention.self.${name}`);
      const shape = add("Concat", [size(x, 0), size(x, 1), list(HEADS), list(HEAD)], {
        axis: { i: 0 },
      });
      return add("Transpose", [add("Reshape", [y, shape])], { perm: { ints: perm } });
    };
    const q = await heads("query", [0, 2, 1, 3]);
    const k = await heads("key", [0, 2, 3, 1]);
    const v = await heads("value", [0, 2, 1, 3]);
    const scores = add("Div", [add("MatMul", [q, k]), number(Math.sqrt(HEAD))]);
    const weights = add("Softmax", [add("Add", [scores, mask])], { axis: { i: -1 } });
    const mixed = add("Transpose", [add("MatMul", [weights, v])], { perm: { ints: [0, 2, 1, 3] } });
    const shape = add("Concat", [size(mixed, 0), size(mixed, 1), list(WIDTH)], { axis: { i: 0 } });
    const joined = add("Reshape", [mixed, shape]);
    const out = await linear(joined, `${at}.attention.output.dense`);
    x = await layerNorm(add("Add", [out, x]), `${at}.attention.output.LayerNorm`);
    const inner = gelu(await linear(x, `${at}.intermediate.dense`));
    const outer = await linear(inner, `${at}.output.dense`);
    const result = layer === LAYERS - 1 ? "last_hidden_state" : undefined;
    x = await layerNorm(add("Add", [outer, x]), `${at}.output.LayerNorm`, result);
  }

  const dims = ["batch", "sequence"];
  return writeOnnx({
    name: "minilm",
    nodes,
    initializers,
    inputs: [["input_ids", LONG, dims], ["attention_mask", LONG, dims], [
      "token_type_ids",
      LONG,
      dims,
    ]],
    outputs: [["last_hidden_state", FLOAT, [...dims, WIDTH]]],
  }, { opsets: { "": 14 } });
}

function transpose(raw: Uint8Array, rows: number, columns: number): Uint8Array {
  const from = new Float32Array(raw.buffer), to = new Float32Array(from.length);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) to[c * rows + r] = from[r * columns + c]!;
  }
  return new Uint8Array(to.buffer);
}
