// What looks at rows: norms as ops and written out, softmax, reductions, orders.

import { type Block, floats, like, some, spelled, withAxes } from "./block.ts";
import { fixedSize, least, plus, type Shape, withAxis } from "./sizes.ts";
import type { Value, Writer } from "./writer.ts";

const EPSILONS = [1e-5, 1e-6, 1e-12, 1e-3, 0.1];

/** A value whose last size is fixed, so that weights can be made for it. */
function rows(g: Writer, ranks: readonly [number, number] = [2, 4]): [Value, number] | undefined {
  const x = floats(g, { ranks });
  const columns = fixedSize(x.shape.at(-1)!);
  return columns === undefined ? undefined : [x, columns];
}

const normOp: Block = (g) => {
  const [x, columns] = rows(g) ?? [];
  if (!x) return undefined;
  const weight = g.random(g.float, [columns!], 0.5, 1.5);
  const bias = g.random(g.float, [columns!], -1, 1);
  const epsilon = { f: g.choose(EPSILONS) };
  const forms: (() => Value)[] = [];
  if (g.opset >= 17) {
    forms.push(() => {
      const first = g.chance(0.8) ? x.shape.length - 1 : g.below(x.shape.length);
      const given = x.shape.slice(first).map(fixedSize);
      const isFixed = !given.includes(undefined);
      const sizes = isFixed ? given as number[] : [columns!];
      const axis = isFixed ? first : x.shape.length - 1;
      const attributes = { axis: { i: spelled(g, axis, x.shape.length) }, epsilon };
      const inputs = [
        x,
        g.random(g.float, sizes, 0.5, 1.5),
        g.chance(0.6) ? g.random(g.float, sizes, -1, 1) : undefined,
      ];
      return g.one("LayerNormalization", inputs, like(x, 4), { attributes });
    });
  }
  if (g.opset >= 23) {
    forms.push(() =>
      g.one("RMSNormalization", [x, weight], like(x, 4), { attributes: some(g, { epsilon }) })
    );
  }
  if (g.float === "f32") {
    forms.push(() =>
      g.one("SimplifiedLayerNormalization", [x, weight], like(x, 4), {
        attributes: { epsilon, axis: { i: -1 } },
      })
    );
    if (x.shape.length === 3) {
      forms.push(() => {
        const skip = g.pick((y) =>
          y.type === x.type && y.shape.every((size, i) =>
            size === x.shape[i]
          ) &&
          y.shape.length === 3
        ) ?? x;
        return g.one("SkipLayerNormalization", [x, skip, weight, bias], like(x, 4), {
          domain: "com.microsoft",
          attributes: { epsilon },
        });
      });
    }
  }
  return forms.length > 0 ? g.choose(forms)() : undefined;
};

function mean(g: Writer, x: Value, axes: readonly number[], keep: boolean): Value {
  const { inputs, attributes } = withAxes(g, axes, 18);
  const rank = x.shape.length, reduced = axes.map((axis) => axis < 0 ? axis + rank : axis);
  const shape = x.shape.flatMap((size, i) =>
    !reduced.includes(i) ? [size] : keep ? [g.fixed(1)] : []
  );
  return g.one("ReduceMean", [x, ...inputs], { ...like(x, x.scale), shape }, {
    attributes: { ...attributes, keepdims: { i: Number(keep) } },
  });
}

/** Layer norm and RMS norm of means, squares and roots, with everything that may differ now and then different. */
const writtenNorm: Block = (g) => {
  const [x, columns] = rows(g) ?? [];
  if (!x) return undefined;
  const rank = x.shape.length;
  // The mean of nothing is what anybody wants it to be.
  if (x.shape.slice(-2).some((size) => least(size) === 0)) return undefined;
  const axes = g.chance(0.85) ? [spelled(g, rank - 1, rank)] : g.choose([[rank - 2], [-1, -2]]);
  const made = like(x, Math.max(4, x.scale));
  const one = (op: string, ...inputs: Value[]): Value => g.one(op, inputs, made);
  const centred = g.chance(0.6) ? one("Sub", x, mean(g, x, axes, true)) : x;
  const base = g.chance(0.9) ? centred : one("Sub", x, mean(g, x, axes, true));
  const squares = g.chance(0.5)
    ? one("Pow", base, g.scalar(g.chance(0.9) ? 2 : 4))
    : one("Mul", base, base);
  const variance = mean(g, squares, g.chance(0.9) ? axes : [rank - 1], true);
  const inner = { ...variance, scale: 4 };
  const epsilon = g.scalar(g.choose(EPSILONS.slice(0, 2).concat(0.1)));
  const sum = g.one("Add", g.chance(0.8) ? [variance, epsilon] : [epsilon, variance], inner);
  const root = g.one("Sqrt", [sum], inner);
  const forms: readonly (() => Value)[] = [
    () => one("Div", centred, root),
    () => one("Mul", centred, g.one("Reciprocal", [root], inner)),
    () => one("Mul", g.one("Div", [g.scalar(g.chance(0.9) ? 1 : 2), root], inner), centred),
  ];
  let y = g.choose(forms)();
  if (g.chance(0.7)) {
    const weight = g.random(g.float, g.chance(0.9) ? [columns!] : [1], 0.5, 1.5);
    y = g.chance(0.5) ? one("Mul", y, weight) : one("Mul", weight, y);
    const bias = g.random(g.float, [columns!], -1, 1);
    if (g.chance(0.7)) y = g.chance(0.5) ? one("Add", y, bias) : one("Add", bias, y);
  }
  return y;
};

const softmax: Block = (g) => {
  const x = floats(g, { ranks: [1, 5] });
  const axis = g.chance(0.7) ? x.shape.length - 1 : g.below(x.shape.length);
  const op = g.choose(["Softmax", "Softmax", "LogSoftmax"]);
  const attributes = { axis: { i: spelled(g, axis, x.shape.length) } };
  return g.one(op, [x], like(x, op === "Softmax" ? 1 : 16), { attributes });
};

/** Reductions, with what they may be of: an empty set has no largest element. */
const REDUCTIONS: readonly { readonly op: string; readonly most: number; readonly full?: true }[] =
  [
    { op: "ReduceSum", most: 16 },
    { op: "ReduceMean", most: 16, full: true },
    { op: "ReduceMax", most: 100, full: true },
    { op: "ReduceMin", most: 100, full: true },
    { op: "ReduceL1", most: 16 },
    { op: "ReduceL2", most: 16 },
    { op: "ReduceSumSquare", most: 8 },
    { op: "ReduceLogSumExp", most: 8, full: true },
    { op: "ReduceProd", most: 1.5 },
  ];

const reduction: Block = (g) => {
  const x = floats(g, { ranks: [1, 5] });
  const { op, most, full } = g.choose(REDUCTIONS);
  if (x.scale > most) return undefined;
  const rank = x.shape.length;
  const axes = g.chance(0.15)
    ? undefined
    : [...x.shape.keys()].filter((i) => i === rank - 1 || g.chance(0.3));
  const reduced = axes ?? [...x.shape.keys()];
  if (full && reduced.some((i) => least(x.shape[i]!) === 0)) return undefined;
  const keep = g.chance(0.7);
  const given = withAxes(g, axes?.map((i) => spelled(g, i, rank)), op === "ReduceSum" ? 13 : 18);
  const shape = x.shape.flatMap((size, i) =>
    !reduced.includes(i) ? [size] : keep ? [g.fixed(1)] : []
  );
  const attributes = { ...given.attributes, ...some(g, {}), keepdims: { i: Number(keep) } };
  return g.one(op, [x, ...given.inputs], { ...like(x, x.scale * 8), shape }, { attributes });
};

const best: Block = (g) => {
  const x = floats(g, { ranks: [1, 4], exact: true });
  const axis = g.below(x.shape.length);
  if (least(x.shape[axis]!) === 0) return undefined;
  const keep = g.chance(0.5);
  const shape: Shape = keep
    ? withAxis(x.shape, axis, g.fixed(1))
    : x.shape.filter((_, i) => i !== axis);
  const attributes = {
    axis: { i: spelled(g, axis, x.shape.length) },
    keepdims: { i: Number(keep) },
    ...some(g, { select_last_index: { i: g.below(2) } }),
  };
  const op = g.choose(["ArgMax", "ArgMin"]);
  return g.one(op, [x], { type: "i64", shape, scale: 64, exact: true }, { attributes });
};

const top: Block = (g) => {
  const x = floats(g, { ranks: [1, 4], exact: true });
  const axis = g.below(x.shape.length);
  const k = Math.min(least(x.shape[axis]!), 1 + g.below(4));
  const shape = withAxis(x.shape, axis, g.fixed(k));
  const [values] = g.node("TopK", [x, g.longs(k)], [
    { ...x, shape },
    { type: "i64", shape, scale: 64, exact: true },
  ], {
    attributes: {
      axis: { i: spelled(g, axis, x.shape.length) },
      ...some(g, { largest: { i: g.below(2) } }),
    },
  });
  return values;
};

const running: Block = (g) => {
  const x = floats(g, { ranks: [1, 4], most: 4 });
  const axis = g.below(x.shape.length);
  const attributes = some(g, { exclusive: { i: g.below(2) }, reverse: { i: g.below(2) } });
  const place = g.constant("i64", [], [spelled(g, axis, x.shape.length)]);
  return g.one("CumSum", [x, place], like(x, x.scale * 8), { attributes });
};

const centred: Block = (g) => {
  const x = floats(g, { ranks: [2, 4] });
  const axis = x.shape.length - 1;
  if (least(x.shape[axis]!) === 0) return undefined;
  return g.one("LpNormalization", [x], like(x, 1), {
    attributes: { axis: { i: axis }, p: { i: 1 + g.below(2) } },
  });
};

const joined: Block = (g) => {
  const x = floats(g, { ranks: [2, 4], exact: true });
  const axis = g.below(x.shape.length);
  const sorted = g.one("Concat", [x, x], {
    ...x,
    shape: withAxis(x.shape, axis, plus(x.shape[axis]!, x.shape[axis]!)),
  }, { attributes: { axis: { i: axis } } });
  return sorted;
};

/** Blocks on rows, with how often they are wanted. */
export const rowBlocks: readonly (readonly [number, Block])[] = [
  [4, normOp],
  [6, writtenNorm],
  [3, softmax],
  [4, reduction],
  [1, best],
  [1, top],
  [1, running],
  [1, centred],
  [1, joined],
];
