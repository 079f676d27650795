// Whole numbers, casts, codes of 8 bit, and shapes that are computed.

import { type Block, exactly, fits, floats, like, some, tame } from "./block.ts";
import { broadcast, fixedSize, least, type Shape, shapeAt, times } from "./sizes.ts";
import type { Value, Writer } from "./writer.ts";

type WholeType = "i64" | "i32" | "u8" | "i8";

const WHOLE: readonly WholeType[] = ["i64", "i64", "i32", "i32", "u8", "i8"];

function whole(g: Writer): Value {
  const found = g.pick(({ type, scale }) => (type === "i64" || type === "i32") && scale < 2 ** 20);
  if (found && g.chance(0.7)) return found;
  const shape = Array.from({ length: 1 + g.below(3) }, () => g.size());
  const type = g.choose(["i64", "i32"] as const);
  const small = fits(shape) ? shape : [g.fixed(3)];
  return g.input({ type, shape: small, scale: 20, exact: true });
}

const arithmetic: Block = (g) => {
  const x = whole(g);
  const y = g.chance(0.5)
    ? g.pick(({ type, shape }) => type === x.type && broadcast(x.shape, shape) !== undefined)!
    : g.constant(x.type, [], [g.choose([1, 2, 3, 7, -3, -1])]);
  const op = g.choose(["Add", "Sub", "Mul", "Max", "Min", "Div", "Mod", "Neg", "Abs"]);
  if (op === "Neg" || op === "Abs") return g.one(op, [x], x);
  const divides = op === "Div" || op === "Mod";
  const by = divides ? g.constant(x.type, [], [g.choose([1, 2, 3, 7, -3])]) : y;
  const shape = broadcast(x.shape, by.shape)!;
  if (!fits(shape)) return undefined;
  const scale = op === "Mul" ? x.scale * by.scale : x.scale + by.scale;
  if (scale > 2 ** 30) return undefined;
  const attributes = op === "Mod" ? { attributes: some(g, { fmod: { i: g.below(2) } }) } : {};
  return g.one(op, [x, by], { ...x, shape, scale }, attributes);
};

const wholeComparison: Block = (g) => {
  const x = whole(g);
  const y = g.constant(x.type, [], [g.choose([-1, 0, 1, 5])]);
  return g.one(g.choose(["Less", "Greater", "Equal"]), [x, y], { ...x, type: "bool", scale: 1 });
};

const toFloat: Block = (g) => {
  const x = g.pick(({ type, scale }) => type !== g.float && !/^f|bf/.test(type) && scale < 100);
  const to = { attributes: { to: { i: g.float === "f16" ? 10 : 1 } } };
  return x && g.one("Cast", [x], exactly({ ...x, type: g.float }, x), to);
};

const NUMBERS = { i64: 7, i32: 6, u8: 2, i8: 3 } as const;

const toWhole: Block = (g) => {
  const x = floats(g, { exact: true });
  const type = g.choose(WHOLE);
  if (x.scale > 100) return undefined;
  const source = type === "u8" ? g.one("Abs", [x], x) : x;
  return g.one("Cast", [source], { ...x, type, exact: true }, {
    attributes: { to: { i: NUMBERS[type] } },
  });
};

/** There and back: what the narrow type does not hold is gone. */
const throughNarrow: Block = (g) => {
  const x = floats(g);
  if (g.float !== "f32") return undefined;
  const [type, number] = g.choose([["f16", 10], ["f16", 10], ["bf16", 16], ["f64", 11]] as const);
  const isSure = type === "f64" || type === "f16" && x.exact;
  let narrow = g.one("Cast", [x], { ...x, type }, { attributes: { to: { i: number } } });
  if (g.chance(0.2)) narrow = g.one("Identity", [narrow], narrow);
  const made = { ...x, exact: x.exact && isSure };
  return g.one("Cast", [narrow], made, { attributes: { to: { i: 1 } } });
};

interface Grid {
  readonly scale: Value;
  readonly zero: Value | undefined;
  readonly type: "u8" | "i8";
}

/** A scale of a power of two, by which exact values come out exactly, and a zero point. */
function someGrid(g: Writer, channels?: number): Grid {
  const type = g.choose(["u8", "i8"] as const);
  const shape = channels === undefined ? [] : [channels];
  const count = channels ?? 1;
  const zeros = Array.from({ length: count }, () => type === "u8" ? 100 + g.below(56) : 0);
  const steps = Array.from({ length: count }, () => g.choose([0.125, 0.25, 0.0625]));
  return {
    type,
    scale: g.constant("f32", shape, steps),
    zero: type === "i8" && g.chance(0.4) ? undefined : g.constant(type, shape, zeros),
  };
}

function quantize(g: Writer, x: Value, { scale, zero, type }: Grid, axis?: number): Value {
  const made = { ...x, type: zero ? type : "u8", scale: 127, exact: true } as const;
  const attributes = axis === undefined ? {} : { axis: { i: axis } };
  return g.one("QuantizeLinear", zero ? [x, scale, zero] : [x, scale], made, { attributes });
}

function dequantize(g: Writer, codes: Value, { scale, zero }: Grid, axis?: number): Value {
  const made = { ...codes, type: "f32", scale: 16, exact: false } as const;
  const attributes = axis === undefined ? {} : { axis: { i: axis } };
  return g.one("DequantizeLinear", zero ? [codes, scale, zero] : [codes, scale], made, {
    attributes,
  });
}

const thereAndBack: Block = (g) => {
  if (g.float !== "f32") return undefined;
  const x = floats(g, { ranks: [1, 4], exact: g.chance(0.6), most: 8 });
  const axis = g.below(x.shape.length), channels = fixedSize(x.shape[axis]!);
  const along = channels !== undefined && channels > 0 && g.chance(0.4) ? axis : undefined;
  const grid = someGrid(g, along === undefined ? undefined : channels);
  return dequantize(g, quantize(g, x, grid, along), grid, along);
};

/** A product of codes and its scale, as dynamic quantisation writes it. */
const dynamicProduct: Block = (g) => {
  if (g.float !== "f32") return undefined;
  const x = floats(g, { ranks: [2, 3], exact: true, most: 8 });
  const inner = fixedSize(x.shape.at(-1)!);
  if (!inner || x.shape.some((size) => least(size) === 0)) return undefined;
  const columns = g.choose([1, 4, 5, 8, 16]);
  const one = { type: "f32", shape: [], scale: 1, exact: false } as const;
  const [codes, step, zero] = g.node("DynamicQuantizeLinear", [x], [
    { ...x, type: "u8", scale: 255, exact: true },
    one,
    { type: "u8", shape: [], scale: 255, exact: true },
  ]) as [Value, Value, Value];
  const type = g.choose(["i8", "u8"] as const);
  const weight = g.constant(
    type,
    [inner, columns],
    Array.from({ length: inner * columns }, () => g.below(100) - (type === "i8" ? 50 : 0)),
  );
  const centre = g.chance(0.6) ? g.constant(type, [], [type === "i8" ? 0 : 50]) : undefined;
  const shape = [...x.shape.slice(0, -1), g.fixed(columns)];
  const inputs = [codes, weight, g.chance(0.9) ? zero : undefined, centre];
  const sums = g.one("MatMulInteger", inputs.slice(0, centre ? 4 : 3), {
    type: "i32",
    shape,
    scale: 2 ** 24,
    exact: true,
  });
  const floating = g.one("Cast", [sums], { ...sums, type: "f32", exact: false }, {
    attributes: { to: { i: 1 } },
  });
  const both = g.one("Mul", [step, g.scalar(g.real(0.001, 0.01))], { ...step });
  return tame(g, g.one("Mul", [floating, both], { ...floating, scale: 64 }), 16);
};

/** A product between grids, as static quantisation writes it. */
const productOfGrids: Block = (g) => {
  if (g.float !== "f32") return undefined;
  const x = floats(g, { ranks: [2, 3], exact: true, most: 8 });
  const inner = fixedSize(x.shape.at(-1)!);
  if (!inner) return undefined;
  const columns = g.choose([1, 4, 5, 8, 16]), grid = someGrid(g);
  const codes = quantize(g, x, grid);
  const list = Array.from({ length: inner * columns }, () => g.below(200) - 100);
  const isWide = g.chance(0.5);
  const steps = Array.from({ length: isWide ? columns : 1 }, () => g.real(0.001, 0.02));
  const weights = { scale: g.constant("f32", isWide ? [columns] : [], steps), type: "i8" } as const;
  const stored = g.constant("i8", [inner, columns], list);
  const unpacked = dequantize(g, stored, { ...weights, zero: undefined }, isWide ? 1 : undefined);
  const product = g.one("MatMul", [dequantize(g, codes, grid), unpacked], {
    ...like(x, 16),
    shape: [...x.shape.slice(0, -1), g.fixed(columns)],
  });
  if (g.chance(0.5)) return product;
  return g.one("Add", [product, g.random("f32", [columns], -1, 1)], product);
};

/** A shape taken apart and put together again, by which a value is reshaped. */
const computedReshape: Block = (g) => {
  const x = floats(g, { ranks: [2, 4] }), rank = x.shape.length;
  const vector = { type: "i64", scale: 64, exact: true } as const;
  const shape = g.one("Shape", [x], { ...vector, shape: [g.fixed(rank)] });
  const sizeAt = (axis: number): Value =>
    g.one("Gather", [shape, g.constant("i64", [], [axis])], { ...vector, shape: [] });
  const list = (value: Value): Value => {
    const inputs = g.opset >= 13 ? [value, g.longs(0)] : [value];
    return g.one("Unsqueeze", inputs, { ...vector, shape: [g.fixed(1)] });
  };
  const axis = g.below(rank - 1);
  const merged = g.one("Mul", [sizeAt(axis), sizeAt(axis + 1)], { ...vector, shape: [] });
  const parts = [
    ...Array.from({ length: axis }, (_, i) => list(sizeAt(i))),
    list(merged),
    ...Array.from({ length: rank - axis - 2 }, (_, i) => list(sizeAt(axis + 2 + i))),
  ];
  const target = g.one("Concat", parts, { ...vector, shape: [g.fixed(parts.length)] }, {
    attributes: { axis: { i: 0 } },
  });
  const made: Shape = [
    ...x.shape.slice(0, axis),
    times(x.shape[axis]!, x.shape[axis + 1]!),
    ...x.shape.slice(axis + 2),
  ];
  const attributes = g.opset >= 14 ? { allowzero: { i: 1 } } : {};
  if (g.opset < 14 && x.shape.some((size) => least(size) === 0)) return undefined;
  return g.one("Reshape", [x, target], { ...x, shape: made }, { attributes });
};

/** Positions and zeros of the size of a value. */
const generated: Block = (g) => {
  const x = floats(g, { ranks: [1, 3] });
  const vector = { type: "i64", scale: 64, exact: true } as const;
  const shape = g.one("Shape", [x], { ...vector, shape: [g.fixed(x.shape.length)] });
  if (g.chance(0.5)) {
    const value = { t: { type: 1, dims: [1], floats: [g.choose([0, 1, -2.5])] } };
    if (g.float !== "f32") return undefined;
    return g.one("ConstantOfShape", [shape], exactly({ ...x, scale: 3, exact: true }), {
      attributes: { value },
    });
  }
  const axis = x.shape.length - 1;
  const end = g.one("Gather", [shape, g.constant("i64", [], [axis])], { ...vector, shape: [] });
  const [zero, one] = [0, 1].map((n) => g.constant("i64", [], [n]));
  return g.one("Range", [zero, end, one], { ...vector, shape: [x.shape[axis]!] });
};

/** The shape itself as a value, or a part of it. */
const shapeOf: Block = (g) => {
  const x = g.pick(({ shape }) => shape.length > 0);
  if (!x) return undefined;
  const [start, end] = [g.below(x.shape.length), x.shape.length];
  const most = Math.max(...x.shape.flatMap((size) => shapeAt([size], 0)), 1);
  const attributes = g.opset >= 15 ? some(g, { start: { i: start } }) : {};
  const count = attributes.start ? end - start : end;
  return g.one("Shape", [x], {
    type: "i64",
    shape: [g.fixed(count)],
    scale: most,
    exact: true,
  }, { attributes });
};

/** Blocks on whole numbers, with how often they are wanted. */
export const numberBlocks: readonly (readonly [number, Block])[] = [
  [4, arithmetic],
  [2, wholeComparison],
  [3, toFloat],
  [2, toWhole],
  [3, throughNarrow],
  [2, computedReshape],
  [1, generated],
  [1, shapeOf],
];

/** Blocks on codes, with how often they are wanted. */
export const codeBlocks: readonly (readonly [number, Block])[] = [
  [4, thereAndBack],
  [2, dynamicProduct],
  [3, productOfGrids],
];
