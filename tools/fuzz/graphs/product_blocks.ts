// Products: linear layers with bias and activation, Gemm with all its attributes, products of values.

import { attention } from "./attention_blocks.ts";
import { activate } from "./elementwise_blocks.ts";
import { type Block, fits, floats, like, some } from "./block.ts";
import { linear, WIDTHS } from "./linear.ts";
import { equal, fixedSize, type Shape, type Size } from "./sizes.ts";
import type { Value } from "./writer.ts";

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

/** Blocks of products, with how often they are wanted. */
export const productBlocks: readonly (readonly [number, Block])[] = [
  [5, layer],
  [2, gemm],
  [2, between],
  [1, sums],
  [6, attention],
];
