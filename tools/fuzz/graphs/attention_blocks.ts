// Attention written out as exporters do: softmax(q·kᵀ·scale + mask)·v with scale, mask and transposes in every order,
// heads that are repeated for groups, keys and values behind those of a past, and a softmax that is safe.

import { type Block, fits, floats, like } from "./block.ts";
import { linear, WIDTHS } from "./linear.ts";
import { equal, fixedSize, least, plus, type Shape, type Size, withAxis } from "./sizes.ts";
import type { Value, Writer } from "./writer.ts";

interface Heads {
  readonly heads: number;
  readonly depth: number;
}

/** [B, T, heads·depth] as [B, heads, T, depth]. */
function splitHeads(g: Writer, x: Value, { heads, depth }: Heads): Value {
  const [b, t] = x.shape as [Size, Size];
  const split: Shape = [b, t, g.fixed(heads), g.fixed(depth)];
  const cut = g.one("Reshape", [x, g.longs(0, 0, heads, depth)], { ...x, shape: split });
  return turned(g, cut, [0, 2, 1, 3]);
}

function turned(g: Writer, x: Value, perm: readonly number[]): Value {
  const shape = perm.map((i) => x.shape[i]!);
  return g.one("Transpose", [x], { ...x, shape }, { attributes: { perm: { ints: perm } } });
}

/** Heads of keys or values behind those of a past that the graph is given. */
function behindPast(g: Writer, heads: Value, past: Size): Value {
  const before = g.input({ ...heads, shape: withAxis(heads.shape, 2, past), scale: 2 });
  const shape = withAxis(heads.shape, 2, plus(past, heads.shape[2]!));
  const attributes = { axis: { i: g.choose([2, -2]) } };
  return g.one("Concat", [before, heads], { ...heads, shape }, { attributes });
}

/** [B, groups, S, depth] as [B, groups·times, S, depth], every head so many times in a row. */
function repeated(g: Writer, x: Value, times: number): Value {
  const [b, groups, s, depth] = x.shape as [Size, Size, Size, Size];
  const single: Shape = [b, groups, g.fixed(1), s, depth];
  const lifted = g.one("Unsqueeze", [x, g.longs(2)], { ...x, shape: single });
  const spread = g.one("Expand", [lifted, g.longs(1, 1, times, 1, 1)], {
    ...x,
    shape: withAxis(single, 2, g.fixed(times)),
  });
  const count = fixedSize(groups)! * times;
  return g.one("Reshape", [spread, g.longs(0, count, -1, fixedSize(depth)!)], {
    ...x,
    shape: [b, g.fixed(count), s, depth],
  });
}

/** What may be added to scores, or chosen by. */
function masked(g: Writer, scores: Value): Value {
  const [b, , t, s] = scores.shape as [Size, Size, Size, Size];
  const one = g.fixed(1);
  const shapes: readonly Shape[] = [
    [b, one, one, s],
    [b, one, t, s],
    [t, s],
    [s],
    [one, one, t, s],
    scores.shape,
  ];
  const shape = g.choose(shapes);
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

/** Scaled products of queries and keys; `k` is [B, heads, S, depth]. */
function scoresOf(g: Writer, q: Value, k: Value, depth: number): Value {
  const scale = g.choose([1 / Math.sqrt(depth), 0.5, 0.125]);
  const way = g.choose(["none", "product", "divide", "both", "query", "heads"]);
  const onBoth = way === "both";
  const scaledQ = onBoth || way === "query" ? g.one("Mul", [q, g.scalar(scale)], q) : q;
  const keys = turned(g, k, [0, 1, 3, 2]);
  const scaledK = onBoth ? g.one("Mul", [keys, g.scalar(Math.sqrt(scale))], keys) : keys;
  const shape = [...q.shape.slice(0, 3), k.shape[2]!];
  const scores = g.one("MatMul", [scaledQ, scaledK], { ...like(q, 8), shape });
  if (way === "product") return g.one("Mul", [scores, g.scalar(scale)], scores);
  if (way === "divide") return g.one("Div", [scores, g.scalar(1 / scale)], scores);
  if (way !== "heads") return scores;
  const heads = fixedSize(q.shape[1]!)!;
  return g.one("Mul", [scores, g.random(g.float, [heads, 1, 1], 0.2, 1)], scores);
}

function softmaxOf(g: Writer, scores: Value): Value {
  const axis = g.chance(0.9) || least(scores.shape[2]!) === 0 ? g.choose([-1, 3]) : 2;
  const attributes = { axis: { i: axis } };
  const weights = g.one("Softmax", [scores], { ...scores, scale: 1 }, { attributes });
  if (g.chance(0.85)) return weights;
  const isNan = g.one("IsNaN", [weights], { ...weights, type: "bool", exact: true });
  return g.one("Where", [isNan, g.scalar(g.chance(0.9) ? 0 : 0.5), weights], weights);
}

/** Attention of a value to itself or another one. */
export const attention: Block = (g) => {
  const x = floats(g, { ranks: [3, 3], most: 4 });
  const [b, t, width] = x.shape as [Size, Size, Size];
  if (fixedSize(width) === undefined || g.float !== "f32") return undefined;
  const other = g.chance(0.6)
    ? x
    : g.pick(({ type, shape }) =>
      type === x.type && shape.length === 3 && equal(shape[0]!, b) &&
      fixedSize(shape[2]!) !== undefined
    ) ?? x;
  const heads = g.choose([1, 2, 3, 4]), depth = g.choose([2, 4, 5, 8, 16]);
  const valueDepth = g.chance(0.85) ? depth : depth + 1;
  // As many heads of keys as of queries, one for all of them, or one for every two.
  const groups = g.choose([heads, heads, heads, 1, heads % 2 === 0 ? heads / 2 : heads]);
  const past = g.chance(0.25) ? g.size() : undefined;
  const s = past ? plus(past, other.shape[1]!) : other.shape[1]!;
  const isLarge = !fits([b, g.fixed(heads), t, s]) || !fits([b, s, g.fixed(heads * valueDepth)]);
  // A row that sees nothing is NaN; a -1 in a reshape of nothing is anything.
  if (isLarge || least(s) === 0 || least(b) === 0) return undefined;
  const isRepeated = groups !== 1 && groups !== heads || g.chance(0.2);
  const stored = (size: number): Value => {
    const own = splitHeads(g, linear(g, other, groups * size), { heads: groups, depth: size });
    const all = past ? behindPast(g, own, past) : own;
    return isRepeated ? repeated(g, all, heads / groups) : all;
  };
  const q = splitHeads(g, linear(g, x, heads * depth), { heads, depth });
  const k = stored(depth), v = stored(valueDepth);
  const scores = scoresOf(g, q, k, depth);
  const weights = softmaxOf(g, g.chance(0.6) ? masked(g, scores) : scores);
  const context = g.one("MatMul", [weights, v], {
    ...like(v, v.scale),
    shape: [b, g.fixed(heads), t, g.fixed(valueDepth)],
  });
  if (g.chance(0.2)) return context;
  const rows = turned(g, context, [0, 2, 1, 3]);
  const columns = heads * valueDepth;
  const flat = g.one("Reshape", [rows, g.longs(0, 0, columns)], {
    ...rows,
    shape: [b, t, g.fixed(columns)],
  });
  return g.chance(0.5) ? linear(g, flat, g.choose(WIDTHS)) : flat;
};
