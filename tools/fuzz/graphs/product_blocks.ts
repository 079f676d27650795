// Products and attention: linear layers with bias and activation, Gemm with all its attributes, products of
// values, and attention written out as exporters do, in every order of scale, mask and transposes.

import { activate } from "./elementwise_blocks.ts";
import { type Block, fits, floats, like, some } from "./block.ts";
import { equal, fixedSize, type Shape, type Size } from "./sizes.ts";
import type { Value, Writer } from "./writer.ts";

const WIDTHS = [1, 2, 3, 4, 5, 8, 12, 16, 24, 31, 32, 33];

/** x · W, plus a bias now and then. */
function linear(g: Writer, x: Value, columns: number, biased = g.chance(0.7)): Value {
  const inner = fixedSize(x.shape.at(-1)!)!;
  const size = 1 / Math.sqrt(Math.max(1, inner));
  const shape = [...x.shape.slice(0, -1), g.fixed(columns)];
  const weight = g.random(g.float, [inner, columns], -size, size);
  const made = { ...like(x, x.scale), shape };
  const product = g.one("MatMul", [x, weight], made);
  if (!biased) return product;
  const bias = g.random(g.float, g.chance(0.9) ? [columns] : [1], -1, 1);
  return g.one("Add", g.chance(0.7) ? [product, bias] : [bias, product], {
    ...made,
    scale: made.scale + 1,
  });
}

const layer: Block = (g) => {
  const x = floats(g, { ranks: [2, 4] });
  if (fixedSize(x.shape.at(-1)!) === undefined) return undefined;
  const columns = g.choose(WIDTHS);
  if (!fits([...x.shape.slice(0, -1), g.fixed(columns)])) return undefined;
  const y = linear(g, x, columns);
  return g.chance(0.5) ? activate(g, y) : y;
};

const gemm: Block = (g) => {
  const x = floats(g, { ranks: [2, 2] });
  const [transA, transB] = [g.below(2), g.below(2)];
  const [rows, inner] = transA ? [x.shape[1]!, x.shape[0]!] : [x.shape[0]!, x.shape[1]!];
  const k = fixedSize(inner), columns = g.choose(WIDTHS);
  if (k === undefined) return undefined;
  const size = 1 / Math.sqrt(Math.max(1, k));
  const weight = g.random(g.float, transB ? [columns, k] : [k, columns], -size, size);
  const addends: number[][] = [[columns], [1, columns], [1], []];
  const m = fixedSize(rows);
  if (m !== undefined) addends.push([m, 1], [m, columns]);
  const added = g.chance(0.7) ? g.random(g.float, g.choose(addends), -1, 1) : undefined;
  const attributes = {
    ...some(g, { alpha: { f: g.choose([1, 0.5, 2]) }, beta: { f: g.choose([1, 0.25, 0]) } }),
    transA: { i: transA },
    transB: { i: transB },
  };
  const made = { ...like(x, x.scale * 2 + 1), shape: [rows, g.fixed(columns)] };
  const y = g.one("Gemm", [x, weight, added], made, { attributes });
  return g.chance(0.4) ? activate(g, y) : y;
};

const between: Block = (g) => {
  const a = floats(g, { ranks: [2, 4], most: 4 });
  const inner = a.shape.at(-1)!;
  const b =
    g.pick(({ type, shape, scale }) =>
      type === a.type && shape.length >= 2 && equal(shape.at(-2)!, inner) && scale <= 8 &&
      (shape.length === 2 ||
        shape.length === a.shape.length &&
          shape.slice(0, -2).every((s, i) => equal(s, a.shape[i]!)))
    ) ?? g.input({
      type: a.type,
      shape: [...a.shape.slice(0, -2).map((s) => g.chance(0.7) ? s : g.fixed(1)), inner, g.size()],
      scale: 1,
      exact: false,
    });
  const shape = [...a.shape.slice(0, -1), b.shape.at(-1)!];
  return fits(shape) ? g.one("MatMul", [a, b], { ...like(a, a.scale * 4), shape }) : undefined;
};

const sums: Block = (g) => {
  const x = floats(g, { ranks: [3, 3], most: 4 });
  const [b, t, c] = x.shape as [Size, Size, Size];
  const forms: readonly (readonly [string, Value[], Shape])[] = [
    ["bic,bjc->bij", [x, x], [b, t, t]],
    ["btc->bct", [x], [b, c, t]],
    ["btc,btd->bcd", [x, x], [b, c, c]],
    ["btc->bc", [x], [b, c]],
  ];
  const [equation, inputs, shape] = g.choose(forms);
  if (!fits(shape)) return undefined;
  return g.one("Einsum", inputs, { ...like(x, x.scale * 8), shape }, {
    attributes: { equation: { s: equation } },
  });
};

interface Heads {
  readonly heads: number;
  readonly depth: number;
}

/** [B, T, heads·depth] as [B, heads, T, depth], or [B, heads, depth, T] for keys. */
function splitHeads(g: Writer, x: Value, { heads, depth }: Heads, perm: readonly number[]): Value {
  const [b, t] = x.shape as [Size, Size];
  const split: Shape = [b, t, g.fixed(heads), g.fixed(depth)];
  const cut = g.one("Reshape", [x, g.longs(0, 0, heads, depth)], { ...x, shape: split });
  const attributes = { perm: { ints: perm } };
  return g.one("Transpose", [cut], { ...x, shape: perm.map((i) => split[i]!) }, { attributes });
}

/** What may be added to scores, or chosen by. */
function masked(g: Writer, scores: Value): Value {
  const [b, h, t, s] = scores.shape as [Size, Size, Size, Size];
  const one = g.fixed(1);
  const shape = g.choose<Shape>([[b, one, one, s], [b, one, t, s], [t, s], [s], [one, one, t, s], [
    b,
    h,
    t,
    s,
  ]]);
  if (g.chance(0.4)) {
    const visible = g.input({ type: "bool", shape, scale: 1, exact: true });
    const hidden = g.scalar(g.choose([-10000, -1e9, -3.4028234663852886e38]));
    const isTurned = g.chance(0.3);
    const inputs = isTurned ? [visible, hidden, scores] : [visible, scores, hidden];
    return g.one("Where", inputs, scores);
  }
  const mask = g.input({ type: g.float, shape, scale: 3, exact: false });
  return g.one("Add", g.chance(0.8) ? [scores, mask] : [mask, scores], scores);
}

/** softmax(q·kᵀ·scale + mask)·v */
const attention: Block = (g) => {
  const x = floats(g, { ranks: [3, 3], most: 4 });
  if (fixedSize(x.shape[2]!) === undefined || g.float !== "f32") return undefined;
  const other = g.chance(0.6)
    ? x
    : g.pick(({ type, shape }) =>
      type === x.type && shape.length === 3 && equal(shape[0]!, x.shape[0]!) &&
      fixedSize(shape[2]!) !== undefined
    ) ?? x;
  const heads = g.choose([1, 2, 3, 4]), depth = g.choose([2, 4, 5, 8, 16]);
  const kvHeads = g.chance(0.85) ? heads : 1;
  const wide = { heads, depth }, narrow = { heads: kvHeads, depth };
  const vDepth = g.chance(0.85) ? depth : depth + 1;
  const [b, t, s] = [x.shape[0]!, x.shape[1]!, other.shape[1]!];
  if (!fits([b, g.fixed(heads), t, s]) || !fits([b, s, g.fixed(heads * vDepth)])) return undefined;
  if (Math.min(...s) === 0) return undefined; // a row of nothing is NaN
  let q = splitHeads(g, linear(g, x, heads * depth), wide, [0, 2, 1, 3]);
  let k = g.chance(0.5)
    ? splitHeads(g, linear(g, other, kvHeads * depth), narrow, [0, 2, 3, 1])
    : turned(g, splitHeads(g, linear(g, other, kvHeads * depth), narrow, [0, 2, 1, 3]));
  const v = splitHeads(
    g,
    linear(g, other, kvHeads * vDepth),
    { heads: kvHeads, depth: vDepth },
    [0, 2, 1, 3],
  );
  const scale = g.choose([1 / Math.sqrt(depth), 0.5, 0.125]);
  const way = g.choose(["none", "product", "divide", "both", "query", "heads"]);
  if (way === "both" || way === "query") q = g.one("Mul", [q, g.scalar(scale)], q);
  if (way === "both") k = g.one("Mul", [k, g.scalar(Math.sqrt(scale))], k);
  const shape = [b, g.fixed(heads), t, s];
  let scores = g.one("MatMul", [q, k], { ...like(q, 8), shape });
  if (way === "product") scores = g.one("Mul", [scores, g.scalar(scale)], scores);
  if (way === "divide") scores = g.one("Div", [scores, g.scalar(1 / scale)], scores);
  if (way === "heads") {
    scores = g.one("Mul", [scores, g.random(g.float, [heads, 1, 1], 0.2, 1)], scores);
  }
  if (g.chance(0.6)) scores = masked(g, scores);
  const axis = g.chance(0.9) ? g.choose([-1, 3]) : 2;
  if (axis === 2 && Math.min(...t) === 0) return undefined;
  const weights = g.one("Softmax", [scores], { ...scores, scale: 1 }, {
    attributes: { axis: { i: axis } },
  });
  const context = g.one("MatMul", [weights, v], {
    ...like(v, v.scale),
    shape: [b, g.fixed(heads), t, g.fixed(vDepth)],
  });
  if (g.chance(0.2)) return context;
  const perm = { perm: { ints: [0, 2, 1, 3] } };
  const rows = g.one("Transpose", [context], {
    ...context,
    shape: [b, t, g.fixed(heads), g.fixed(vDepth)],
  }, { attributes: perm });
  const flat = g.one("Reshape", [rows, g.longs(0, 0, heads * vDepth)], {
    ...rows,
    shape: [b, t, g.fixed(heads * vDepth)],
  });
  return g.chance(0.5) ? linear(g, flat, g.choose(WIDTHS)) : flat;
};

function turned(g: Writer, x: Value): Value {
  const [b, h, t, d] = x.shape as [Size, Size, Size, Size];
  const attributes = { perm: { ints: [0, 1, 3, 2] } };
  return g.one("Transpose", [x], { ...x, shape: [b, h, d, t] }, { attributes });
}

/** Blocks of products, with how often they are wanted. */
export const productBlocks: readonly (readonly [number, Block])[] = [
  [5, layer],
  [2, gemm],
  [2, between],
  [1, sums],
  [6, attention],
];
