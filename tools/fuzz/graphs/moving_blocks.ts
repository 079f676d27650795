// What only moves elements: reshapes, transposes, slices, gathers, pads, in chains that a planner may see through.

import { type Block, fits, floats, some, spelled, withAxes } from "./block.ts";
import {
  equal,
  fixedShape,
  fixedSize,
  least,
  plus,
  type Shape,
  type Size,
  times,
  withAxis,
} from "./sizes.ts";
import type { Value, Writer } from "./writer.ts";

/** Any value that can be moved: floats mostly, whole numbers and truth values too. */
function any(g: Writer, low = 1, high = 5): Value {
  const found = g.pick(({ shape }) => shape.length >= low && shape.length <= high);
  return found && g.chance(0.5) ? found : floats(g, { ranks: [low, high], most: 1e6 });
}

const transpose: Block = (g) => {
  const x = any(g, 2);
  const perm = x.shape.map((_, i) => i);
  for (let i = perm.length - 1; i > 0; i--) {
    const j = g.below(i + 1);
    [perm[i], perm[j]] = [perm[j]!, perm[i]!];
  }
  const shape = perm.map((i) => x.shape[i]!);
  const isReversed = perm.every((axis, i) => axis === perm.length - 1 - i);
  const attributes = isReversed && g.chance(0.5) ? {} : { perm: { ints: perm } };
  return g.one("Transpose", [x], { ...x, shape }, { attributes });
};

/** Two neighbours become one, or one becomes two; sizes by number, 0 and -1. */
const reshape: Block = (g) => {
  const x = any(g), rank = x.shape.length;
  const axis = g.below(rank), size = fixedSize(x.shape[axis]!);
  if (g.chance(0.5) && axis + 1 < rank) {
    const merged = times(x.shape[axis]!, x.shape[axis + 1]!);
    const known = fixedSize(merged);
    const isNothing = x.shape.some((one) => least(one) === 0);
    const shape = [...x.shape.slice(0, axis), merged, ...x.shape.slice(axis + 2)];
    const target = shape.map((one, i) => i < axis ? 0 : fixedSize(one));
    const at = known !== undefined && known > 0 && g.chance(0.5) ? known : -1;
    target[axis] = at;
    if ((at === -1 && isNothing) || target.includes(undefined)) return undefined;
    // A 0 behind the merged place would copy another size.
    if (target.slice(axis + 1).includes(0)) return undefined;
    return g.one("Reshape", [x, g.longs(...target as number[])], { ...x, shape });
  }
  const parts = size === undefined || size < 2
    ? undefined
    : [2, 3, 4, 5].filter((n) => size % n === 0);
  if (!parts?.length || rank > 5) return undefined;
  const part = g.choose(parts);
  const shape = [
    ...x.shape.slice(0, axis),
    g.fixed(part),
    g.fixed(size! / part),
    ...x.shape.slice(axis + 1),
  ];
  const target = shape.map((one, i) => i < axis ? 0 : fixedSize(one));
  const behind = target.slice(axis + 2);
  if (behind.includes(undefined)) {
    if (behind.filter((one) => one === undefined).length > 1) return undefined;
    if (x.shape.some((one) => least(one) === 0)) return undefined;
  }
  const numbers = target.map((one) => one ?? -1);
  if (numbers.slice(axis).includes(0)) return undefined;
  return g.one("Reshape", [x, g.longs(...numbers)], { ...x, shape });
};

const squeeze: Block = (g) => {
  const x = any(g);
  const ones = [...x.shape.keys()].filter((i) => fixedSize(x.shape[i]!) === 1);
  if (ones.length > 0 && x.shape.length > 1 && g.chance(0.6)) {
    const axis = g.choose(ones);
    const { inputs, attributes } = withAxes(g, [spelled(g, axis, x.shape.length)], 13);
    const shape = x.shape.filter((_, i) => i !== axis);
    return g.one("Squeeze", [x, ...inputs], { ...x, shape }, { attributes });
  }
  if (x.shape.length > 4) return undefined;
  const axis = g.below(x.shape.length + 1);
  const { inputs, attributes } = withAxes(g, [spelled(g, axis, x.shape.length + 1)], 13);
  const shape = [...x.shape.slice(0, axis), g.fixed(1), ...x.shape.slice(axis)];
  return g.one("Unsqueeze", [x, ...inputs], { ...x, shape }, { attributes });
};

const concat: Block = (g) => {
  const x = any(g), axis = g.below(x.shape.length);
  const alike = (value: Value): boolean =>
    value.type === x.type && value.shape.length === x.shape.length &&
    value.shape.every((size, i) => i === axis || equal(size, x.shape[i]!));
  const list = Array.from({ length: 2 + g.below(2) }, (_, i) => i === 0 ? x : g.pick(alike)!);
  const size = list.map(({ shape }) => shape[axis]!).reduce(plus);
  const shape = withAxis(x.shape, axis, size);
  const scale = Math.max(...list.map((value) => value.scale));
  const made = { ...x, shape, scale, exact: list.every(({ exact }) => exact) };
  const attributes = { axis: { i: spelled(g, axis, x.shape.length) } };
  return fits(shape) ? g.one("Concat", list, made, { attributes }) : undefined;
};

const split: Block = (g) => {
  const x = any(g), axis = g.below(x.shape.length), size = fixedSize(x.shape[axis]!);
  if (size === undefined || size < 2) return undefined;
  const first = 1 + g.below(size - 1);
  const made = [first, size - first].map((n) => ({
    ...x,
    shape: withAxis(x.shape, axis, g.fixed(n)),
  }));
  const attributes = { axis: { i: spelled(g, axis, x.shape.length) } };
  return g.choose(
    g.node("Split", [x, g.longs(first, size - first)], made, { attributes }),
  );
};

/** Where a slice begins and ends may lie beyond the end, or be counted from it; steps may go back. */
const slice: Block = (g) => {
  const x = any(g), axis = g.below(x.shape.length);
  const step = g.choose([1, 1, 1, 2, 3, -1, -2]);
  const start = step > 0 ? g.choose([0, 0, 1, 2, -2, -1]) : g.choose([-1, -1, 1, 2 ** 31 - 1]);
  const end = step > 0
    ? g.choose([2 ** 31 - 1, 2, 3, -1, 1000])
    : g.choose([-(2 ** 31), -1000, 0, -3]);
  const size: Size = x.shape[axis]!.map((n) => sliced(n, { start, end, step }));
  const inputs = [start, end, spelled(g, axis, x.shape.length), step].map((n) => g.longs(n));
  const shape = withAxis(x.shape, axis, size);
  return g.one("Slice", [x, ...inputs], { ...x, shape });
};

/** Elements that a slice takes, as NumPy counts them. */
function sliced(
  size: number,
  { start, end, step }: { readonly start: number; readonly end: number; readonly step: number },
): number {
  const at = (place: number): number => {
    const from = place < 0 ? place + size : place;
    return step > 0 ? Math.min(Math.max(from, 0), size) : Math.min(Math.max(from, -1), size - 1);
  };
  return Math.max(0, Math.ceil((at(end) - at(start)) / step));
}

const gather: Block = (g) => {
  const x = any(g), axis = g.below(x.shape.length), most = least(x.shape[axis]!);
  if (most === 0) return undefined;
  const index = () => g.below(2 * most) - most;
  const count = g.choose([1, 2, 3, 5]);
  const dims = g.choose([[], [count], [count], [2, 2]]);
  const list = Array.from({ length: dims.reduce((a, b) => a * b, 1) }, index);
  const indices = g.constant(g.choose(["i64", "i32"]), dims, list);
  const shape = [...x.shape.slice(0, axis), ...dims.map(g.fixed), ...x.shape.slice(axis + 1)];
  if (!fits(shape)) return undefined;
  const attributes = { axis: { i: spelled(g, axis, x.shape.length) } };
  return g.one("Gather", [x, indices], { ...x, shape }, { attributes });
};

const gatherElements: Block = (g) => {
  const x = any(g, 1, 3), axis = g.below(x.shape.length), most = least(x.shape[axis]!);
  const shape = fixedShape(x.shape);
  if (!shape || most === 0) return undefined;
  const count = shape.reduce((a, b) => a * b, 1);
  const list = Array.from({ length: count }, () => g.below(2 * most) - most);
  const attributes = { axis: { i: spelled(g, axis, x.shape.length) } };
  return g.one("GatherElements", [x, g.constant("i64", shape, list)], x, { attributes });
};

const scatter: Block = (g) => {
  const x = floats(g, { ranks: [2, 3] });
  const rows = least(x.shape[0]!), rest = fixedShape(x.shape.slice(1));
  if (!rest || rows < 2) return undefined;
  const indices = g.constant("i64", [2, 1], [0, rows - 1]);
  const updates = g.random(g.float, [2, ...rest], -1, 1);
  return g.one("ScatterND", [x, indices, updates], { ...x, exact: false });
};

const pad: Block = (g) => {
  const x = floats(g, { ranks: [1, 4] }), rank = x.shape.length;
  const mode = g.choose(["constant", "constant", "reflect", "edge"]);
  const most = (i: number) => mode === "reflect" ? least(x.shape[i]!) - 1 : 2;
  const amounts = [...x.shape.keys(), ...x.shape.keys()].map((i) =>
    g.chance(0.4) ? Math.max(0, Math.min(g.below(3), most(i))) : 0
  );
  if (mode !== "constant" && x.shape.some((size) => least(size) === 0)) return undefined;
  const cuts = mode === "constant" && g.chance(0.2) && least(x.shape[0]!) >= 2;
  if (cuts) amounts[0] = -1;
  const shape: Shape = x.shape.map((size, i) =>
    size.map((n) => n + amounts[i]! + amounts[i + rank]!)
  );
  if (!fits(shape)) return undefined;
  const value = mode === "constant" && g.chance(0.5) ? g.constant(g.float, [], [1.5]) : undefined;
  return g.one("Pad", value ? [x, g.longs(...amounts), value] : [x, g.longs(...amounts)], {
    ...x,
    shape,
  }, { attributes: mode === "constant" ? some(g, { mode: { s: mode } }) : { mode: { s: mode } } });
};

const tile: Block = (g) => {
  const x = any(g, 1, 4);
  const repeats = x.shape.map(() => g.choose([1, 1, 2, 3]));
  const shape = x.shape.map((size, i) => size.map((n) => n * repeats[i]!));
  return fits(shape) ? g.one("Tile", [x, g.longs(...repeats)], { ...x, shape }) : undefined;
};

const expand: Block = (g) => {
  const x = any(g, 1, 3);
  const wanted = x.shape.map((size) => fixedSize(size) === 1 ? g.choose([1, 2, 3]) : 1);
  const front = g.chance(0.3) ? [2] : [];
  const shape = [
    ...front.map(g.fixed),
    ...x.shape.map((size, i) => fixedSize(size) === 1 ? g.fixed(wanted[i]!) : size),
  ];
  return fits(shape)
    ? g.one("Expand", [x, g.longs(...front, ...wanted)], { ...x, shape })
    : undefined;
};

const triangle: Block = (g) => {
  if (g.opset < 14) return undefined;
  const x = floats(g, { ranks: [2, 4] });
  const attributes = some(g, { upper: { i: g.below(2) } });
  const k = g.chance(0.5) ? g.constant("i64", [], [g.choose([-1, 0, 1, 2])]) : undefined;
  return g.one("Trilu", k ? [x, k] : [x], x, { attributes });
};

/** Blocks that move elements, with how often they are wanted. */
export const movingBlocks: readonly (readonly [number, Block])[] = [
  [4, transpose],
  [4, reshape],
  [3, squeeze],
  [3, concat],
  [2, split],
  [4, slice],
  [3, gather],
  [1, gatherElements],
  [1, scatter],
  [2, pad],
  [1, tile],
  [1, expand],
  [1, triangle],
];
