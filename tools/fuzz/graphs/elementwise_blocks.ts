// Functions of single elements: activations with every attribute at usual and unusual values, written out as
// exporters do and a little otherwise, sums and products with constants and with other values.

import type { Attribute } from "../../../tests/support/write_onnx.ts";
import { type Block, exactly, fits, floats, like, some } from "./block.ts";
import { broadcast, fixedSize, type Shape } from "./sizes.ts";
import type { Value, Writer } from "./writer.ts";

interface Activation {
  readonly op: string;
  readonly since?: number;
  readonly domain?: string;
  attributes?(g: Writer): Readonly<Record<string, Attribute>>;
  /** About the largest result of inputs up to a magnitude; default: the same. */
  scale?(most: number): number;
  /** Exact inputs give exact results. */
  readonly exact?: boolean;
}

const SLOPES = [0.01, 0.125, 0.5, 1, 1.5, -0.25, 0];

/** Activations as ops. */
const ACTIVATIONS: readonly Activation[] = [
  { op: "Relu", exact: true },
  { op: "LeakyRelu", attributes: (g) => some(g, { alpha: { f: g.choose(SLOPES) } }) },
  { op: "Elu", attributes: (g) => some(g, { alpha: { f: g.choose([1, 0.5, 2]) } }) },
  { op: "Celu", attributes: (g) => some(g, { alpha: { f: g.choose([1, 0.5, 2]) } }) },
  {
    op: "Selu",
    attributes: (g) => some(g, { alpha: { f: g.choose([1.5, 2]) }, gamma: { f: g.real(0.5, 2) } }),
    scale: (most) => most * 2 + 2,
  },
  { op: "Sigmoid", scale: () => 1 },
  {
    op: "HardSigmoid",
    attributes: (g) =>
      some(g, { alpha: { f: g.choose([0.2, 1 / 6, 0.5]) }, beta: { f: g.choose([0.5, 0.25]) } }),
    scale: () => 1,
  },
  { op: "HardSwish", since: 14 },
  { op: "Softplus", scale: (most) => most + 1 },
  { op: "Softsign", scale: () => 1 },
  { op: "Tanh", scale: () => 1 },
  { op: "Mish", since: 18 },
  { op: "Gelu", since: 20, attributes: (g) => some(g, { approximate: { s: geluKind(g) } }) },
  { op: "Swish", since: 24, attributes: (g) => some(g, { alpha: { f: g.real(0.5, 2) } }) },
  {
    op: "QuickGelu",
    domain: "com.microsoft",
    attributes: (g) => some(g, { alpha: { f: g.choose([1.702, 1, 0.5, 2]) } }),
  },
  { op: "FastGelu", domain: "com.microsoft" },
  { op: "Gelu", domain: "com.microsoft" },
  { op: "Erf", scale: () => 1 },
  { op: "Neg", exact: true },
  { op: "Abs", exact: true },
  { op: "Identity", exact: true },
  { op: "Sin", scale: () => 1 },
  { op: "Cos", scale: () => 1 },
  { op: "Atan", scale: () => 1.6 },
];

const geluKind = (g: Writer): string => g.choose(["none", "tanh"]);

/** One activation on a value. */
export function activate(g: Writer, x: Value): Value {
  const fitting = ACTIVATIONS.filter(({ since = 1, domain }) =>
    since <= g.opset && (!domain || g.float === "f32")
  );
  const { op, domain, attributes, scale, exact } = g.choose(fitting);
  const made = exactly(like(x, scale?.(x.scale) ?? x.scale), x);
  return g.one(op, [x], { ...made, exact: made.exact && exact === true }, {
    attributes: attributes?.(g),
    ...domain !== undefined && { domain },
  });
}

const activation: Block = (g) => activate(g, floats(g));

const clip: Block = (g) => {
  const x = floats(g), low = g.real(-4, 1), high = g.real(0, 6);
  const limit = (value: number) => g.chance(0.75) ? g.constant(g.float, [], [value]) : undefined;
  const limits = g.choose([[0, 6], [0, undefined], [undefined, 3], [-1, 1], [low, high]] as const);
  const [min, max] = limits.map((value) => value === undefined ? undefined : limit(value));
  return g.one("Clip", [x, min, max], like(x, Math.max(x.scale, 6)));
};

// What lies outside of a function's domain is kept away from it.
const guarded: Block = (g) => {
  const x = floats(g);
  const positive = g.one("Add", [
    g.one("Abs", [x], like(x, x.scale)),
    g.scalar(g.real(0.25, 1)),
  ], like(x, x.scale + 1));
  const op = g.choose(["Sqrt", "Log", "Reciprocal"]);
  return g.one(op, [positive], like(x, Math.max(4, x.scale)));
};

const exponential: Block = (g) => {
  const x = floats(g, { most: 3 });
  return g.one("Exp", [x], like(x, 20));
};

const rounding: Block = (g) => {
  const x = floats(g, { exact: true });
  return g.one(g.choose(["Floor", "Ceil", "Round", "Sign"]), [x], exactly(like(x, x.scale + 1), x));
};

const slope: Block = (g) => {
  const x = floats(g, { ranks: [1, 4] });
  const channels = fixedSize(x.shape.at(g.choose([1, -1])) ?? x.shape[0]!);
  const shape = g.chance(0.5) || channels === undefined
    ? [1]
    : fixedSize(x.shape.at(-1)!) === channels
    ? [channels]
    : [channels, ...Array<number>(Math.max(0, x.shape.length - 2)).fill(1)];
  return g.one("PRelu", [x, g.random(g.float, shape, -0.5, 1)], like(x, x.scale));
};

/** x · sigmoid(αx), x · ½ · (1 + erf(x/√2)) and the like, with numbers as they are and a little off. */
const writtenOut: Block = (g) => {
  const x = floats(g, { most: 6 });
  const off = (value: number) =>
    g.scalar(g.chance(0.8) ? value : value * g.choose([0.9, -1, 1.01]));
  const mul = (a: Value, b: Value): Value =>
    g.one("Mul", g.chance(0.5) ? [a, b] : [b, a], like(x, 8));
  const add = (a: Value, b: Value): Value =>
    g.one("Add", g.chance(0.5) ? [a, b] : [b, a], like(x, 8));
  const unary = (op: string, value: Value): Value => g.one(op, [value], like(x, 8));
  const forms: readonly (() => Value)[] = [
    () => mul(x, unary("Sigmoid", g.chance(0.5) ? x : mul(x, off(1.702)))),
    () => {
      const inner = g.chance(0.5)
        ? g.one("Div", [x, off(Math.SQRT2)], like(x, 8))
        : mul(x, off(Math.SQRT1_2));
      const outer = add(unary("Erf", inner), off(1));
      return g.chance(0.5) ? mul(mul(x, off(0.5)), outer) : mul(mul(x, outer), off(0.5));
    },
    () => {
      const cube = g.chance(0.5)
        ? g.one("Pow", [x, g.scalar(3)], like(x, 216))
        : mul(mul(x, x), g.chance(0.9) ? x : unary("Neg", x));
      const inner = mul(off(Math.sqrt(2 / Math.PI)), add(x, mul(off(0.044715), cube)));
      return mul(mul(off(0.5), x), add(off(1), unary("Tanh", inner)));
    },
    () => {
      const clipped = g.one("Clip", [
        add(x, off(3)),
        g.constant(g.float, [], [0]),
        g.constant(g.float, [], [6]),
      ], like(x, 6));
      return g.chance(0.5)
        ? g.one("Div", [mul(x, clipped), off(6)], like(x, 8))
        : mul(x, mul(clipped, off(1 / 6)));
    },
    () => mul(x, unary("Tanh", unary("Softplus", x))),
    () => mul(x, g.one("HardSigmoid", [x], like(x, 1), { attributes: someSlope(g) })),
    () => unary("Sigmoid", mul(unary("Tanh", x), off(1.25))),
  ];
  return g.choose(forms)();
};

const someSlope = (g: Writer) =>
  some(g, { alpha: { f: g.choose([1 / 6, 0.2]) }, beta: { f: g.choose([0.5, 0.25]) } });

/** A constant that broadcasts against a shape: one number, along the last axis, along the channels. */
function beside(g: Writer, x: Value, low: number, high: number): Value {
  const at = (axis: number): number => fixedSize(x.shape[axis] ?? g.fixed(1)) ?? 1;
  const rank = x.shape.length;
  const shapes: readonly number[][] = [
    [],
    [1],
    [at(rank - 1)],
    rank >= 2 ? [at(1), ...Array<number>(rank - 2).fill(1)] : [1],
    rank >= 2 ? [1, at(1), ...Array<number>(rank - 2).fill(1)] : [1],
    rank >= 2 ? [at(rank - 2), 1] : [1],
  ];
  return g.random(g.float, g.choose(shapes), low, high);
}

const withConstant: Block = (g) => {
  const x = floats(g), op = g.choose(["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"]);
  if (op === "Pow") {
    const positive = g.one("Abs", [x], like(x, Math.min(x.scale, 16)));
    return g.one(op, [positive, g.scalar(g.choose([2, 3, 0.5, 1, 0]))], like(x, x.scale ** 3));
  }
  const constant = beside(g, x, op === "Div" ? 0.5 : -2, 2);
  const turned = g.chance(0.3) && op !== "Div";
  const shape = broadcast(x.shape, constant.shape)!;
  return g.one(op, turned ? [constant, x] : [x, constant], { ...like(x, x.scale * 2 + 2), shape });
};

/** Another value that a value can be broadcast with. */
function partner(g: Writer, x: Value): { readonly y: Value; readonly shape: Shape } | undefined {
  const y = g.pick((value) => {
    const shape = value.type === x.type ? broadcast(x.shape, value.shape) : undefined;
    return shape !== undefined && fits(shape);
  });
  if (y && g.chance(0.8)) return { y, shape: broadcast(x.shape, y.shape)! };
  const shape = x.shape.slice(g.below(x.shape.length + 1)).map((size) =>
    g.chance(0.7) ? size : g.fixed(1)
  );
  return {
    y: g.input({ type: x.type, shape, scale: 4, exact: x.exact }),
    shape: broadcast(x.shape, shape)!,
  };
}

const withValue: Block = (g) => {
  const x = floats(g), other = partner(g, x);
  if (!other) return undefined;
  const { y, shape } = other;
  const op = g.choose(["Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean"]);
  const scale = op === "Mul" ? x.scale * y.scale : x.scale + y.scale;
  const made = exactly({ type: x.type, shape, scale, exact: false }, x, y);
  const isExact = made.exact && ["Add", "Sub", "Max", "Min", "Sum"].includes(op);
  return g.one(op, g.chance(0.5) ? [x, y] : [y, x], { ...made, exact: isExact });
};

const quotient: Block = (g) => {
  const x = floats(g), y = floats(g, { exact: false });
  const shape = broadcast(x.shape, y.shape);
  if (!shape || !fits(shape)) return undefined;
  const divisor = g.one("Add", [g.one("Abs", [y], like(y, y.scale)), g.scalar(0.5)], like(y, 4));
  return g.one("Div", [x, divisor], { ...like(x, x.scale * 2), shape });
};

const comparison: Block = (g) => {
  const x = floats(g, { exact: true });
  const other = partner(g, x);
  if (!other?.y.exact) return undefined;
  const op = g.choose(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"]);
  const made = { type: "bool", shape: other.shape, scale: 1, exact: true } as const;
  return g.one(op, [x, other.y], made);
};

const logic: Block = (g) => {
  const a = g.pick(({ type }) => type === "bool");
  if (!a) return undefined;
  if (g.chance(0.3)) return g.one("Not", [a], a);
  const b = g.pick(({ type, shape }) =>
    type === "bool" && broadcast(a.shape, shape) !== undefined
  )!;
  const shape = broadcast(a.shape, b.shape)!;
  return fits(shape) ? g.one(g.choose(["And", "Or", "Xor"]), [a, b], { ...a, shape }) : undefined;
};

const choice: Block = (g) => {
  const condition = g.pick(({ type }) => type === "bool");
  const x = floats(g);
  const shape = condition && broadcast(condition.shape, x.shape);
  if (!shape || !fits(shape)) return undefined;
  const y = g.chance(0.5) ? g.scalar(g.choose([0, -1, 2.5])) : partner(g, { ...x, shape })?.y;
  const whole = y && broadcast(shape, y.shape);
  if (!whole || !fits(whole)) return undefined;
  const made = exactly({ ...like(x, Math.max(x.scale, y.scale)), shape: whole }, x, y);
  return g.one("Where", g.chance(0.5) ? [condition, x, y] : [condition, y, x], made);
};

/** Blocks on single elements, with how often they are wanted. */
export const elementwiseBlocks: readonly (readonly [number, Block])[] = [
  [6, activation],
  [2, clip],
  [2, guarded],
  [1, exponential],
  [1, rounding],
  [1, slope],
  [4, writtenOut],
  [6, withConstant],
  [6, withValue],
  [1, quotient],
  [2, comparison],
  [1, logic],
  [2, choice],
];
