// WebGPU kernels of elementwise ops with any broadcasting, and of the ops that put elements elsewhere: all are
// one shader with other strides. Element types of 4 bytes, and truth values; everything else is the host's.

import {
  BINARY_BOOL,
  BINARY_FLOAT,
  BINARY_FUNCTIONS,
  BINARY_INTEGER,
  BINARY_TESTS,
  POWER_FUNCTION,
} from "../../gpu/kernels/binary_functions.ts";
import {
  STRIDED_BLOCK,
  type StridedRule,
  stridedShader,
  type StridedType,
} from "../../gpu/kernels/strided_map.ts";
import {
  UNARY_FLOAT,
  UNARY_FUNCTIONS,
  UNARY_INTEGER,
  UNARY_SIGNED,
  UNARY_TESTS,
} from "../../gpu/kernels/unary_functions.ts";
import { ceilDiv, type Dim, product } from "./dim.ts";
import type { Node, Value } from "./graph.ts";
import { groupsFor } from "./lower_gpu.ts";
import { broadcastLoop } from "./lower_elementwise.ts";
import type { Move, Moves } from "./lower_move.ts";
import { areFloat32, denseStrides, type Loop, mergedLoop } from "./lower_strided.ts";
import type { GpuKernel, GpuLowering } from "./op.ts";

const RANK = 6;
const NAMES = ["a", "b", "c", "d", "e"] as const;

const TYPES: Readonly<Partial<Record<Value["dtype"], StridedType>>> = {
  f32: "f32",
  i32: "i32",
  u32: "u32",
  bool: "bool",
};

/** A function of the inputs' elements. */
type Rule = Pick<StridedRule, "expression" | "functions" | "constants">;

interface Operand {
  readonly start?: Dim;
  readonly strides: readonly Dim[];
}

/** Uniforms of a loop: sizes, and start and strides of each operand. */
function loopUniforms(
  sizes: readonly Dim[],
  operands: Readonly<Record<string, Operand>>,
  rank: number,
): Record<string, Dim> {
  const front = (list: readonly Dim[], fill: Dim): Dim[] => [
    ...Array<Dim>(rank - list.length).fill(fill),
    ...list,
  ];
  const uniforms: Record<string, Dim> = { count: product(sizes) };
  front(sizes, 1).forEach((size, dim) => dim > 0 && (uniforms[`n${dim}`] = size));
  for (const [name, { start = 0, strides }] of Object.entries(operands)) {
    uniforms[`${name}_at`] = start;
    front(strides, 0).forEach((stride, dim) => uniforms[`${name}_${dim}`] = stride);
  }
  return uniforms;
}

/** Emits a function of the inputs, by default broadcast to the output. */
function emitElements(
  lowering: GpuLowering,
  name: string,
  rule: Rule,
  constants: Readonly<Record<string, number>> = {},
  { sizes, strides }: Loop = broadcastLoop(lowering.node),
): void {
  const { inputs, outputs: [y] } = lowering.node;
  const rank = sizes.length <= 1 ? 1 : RANK;
  const slices = inputs.map((input) => lowering.slice(input!));
  // Views may lie in the same memory: it is bound once.
  const firstAt = slices.map(({ buffer, offset }) =>
    slices.findIndex((other) => other.buffer === buffer && other.offset === offset)
  );
  const own = firstAt.every((first, i) => first === i || inputs[first] === inputs[i]);
  const shared = firstAt.flatMap((first, i) => first === i ? [] : [[NAMES[i]!, NAMES[first]!]]);
  const shader = stridedShader({
    ...rule,
    name,
    inputs: Object.fromEntries(inputs.map((input, i) => [NAMES[i]!, TYPES[input!.dtype]!])),
    shared: Object.fromEntries(shared),
    output: TYPES[y!.dtype]!,
    constants: Object.keys(constants),
    rank,
  });
  const storage = slices.flatMap((slice, i) =>
    // A copy is not known to be the memory of this input, so other nodes are not lowered like this one.
    firstAt[i] === i ? [[`${NAMES[i]!}_in`, own ? slice : { ...slice }] as const] : []
  );
  const operands = Object.fromEntries(strides.map((list, i) => [NAMES[i]!, { strides: list }]));
  const uniforms = loopUniforms(sizes, operands, rank);
  const count = uniforms.count!;
  lowering.emit({
    shader,
    storage: { ...Object.fromEntries(storage), y: lowering.slice(y!) },
    uniforms: { ...uniforms, ...constants },
    workgroups: groupsFor(y!.dtype === "bool" ? ceilDiv(count, 4) : count, STRIDED_BLOCK),
  });
}

function hasTypes({ inputs, outputs }: Node): boolean {
  return [...inputs, ...outputs].every((value) => value && TYPES[value.dtype] !== undefined);
}

function fits(node: Node): boolean {
  return hasTypes(node) && broadcastLoop(node).sizes.length <= RANK;
}

function unaryRule({ inputs: [x], attributes }: Node): Rule | undefined {
  const kind = attributes.kind as string, dtype = x!.dtype;
  const table = dtype === "f32"
    ? { ...UNARY_FLOAT, ...UNARY_TESTS }
    : dtype === "i32"
    ? { ...UNARY_INTEGER, ...UNARY_SIGNED }
    : dtype === "u32"
    ? UNARY_INTEGER
    : { not: "!x" };
  const expression = (table as Readonly<Record<string, string>>)[kind];
  if (expression === undefined) return undefined;
  return { expression: expression.replace(/\bx\b/g, "a"), functions: UNARY_FUNCTIONS };
}

/** Kernels of `unary`. */
export const gpuUnaryKernels: readonly GpuKernel[] = [{
  name: "gpu_unary",
  when: ({ node }) => hasTypes(node) && unaryRule(node) !== undefined,
  lower(lowering) {
    const { kind, alpha, beta } = lowering.node.attributes;
    const constants = { alpha: alpha as number, beta: beta as number };
    emitElements(lowering, `unary_${kind}`, unaryRule(lowering.node)!, constants);
  },
}];

function binaryRule({ inputs: [a] }: Node, kind: string): Rule | undefined {
  const table = a!.dtype === "f32"
    ? { ...BINARY_FLOAT, ...BINARY_TESTS }
    : a!.dtype === "bool"
    ? BINARY_BOOL
    : { ...BINARY_INTEGER, ...BINARY_TESTS };
  const expression = (table as Readonly<Record<string, string>>)[kind];
  return expression === undefined ? undefined : { expression, functions: BINARY_FUNCTIONS };
}

/** Kernels of `binary`. */
export const gpuBinaryAnyKernels: readonly GpuKernel[] = [{
  name: "gpu_binary",
  when: ({ node }) => fits(node) && binaryRule(node, node.attributes.kind as string) !== undefined,
  lower(lowering) {
    const kind = lowering.node.attributes.kind as string;
    emitElements(lowering, `binary_${kind}`, binaryRule(lowering.node, kind)!);
  },
}];

/** Kernels of `pow`. */
export const gpuPowKernels: readonly GpuKernel[] = [{
  name: "gpu_pow_f32",
  when: ({ node }) => areFloat32(node.inputs) && fits(node),
  lower: (lowering) =>
    emitElements(lowering, "pow", { expression: "power(a, b)", functions: POWER_FUNCTION }),
}];

/** Kernels of `where`. */
export const gpuWhereKernels: readonly GpuKernel[] = [{
  name: "gpu_where",
  when: ({ node }) => fits(node),
  lower: (lowering) => emitElements(lowering, "where", { expression: "select(c, b, a)" }),
}];

/** Expressions by `from to`: casts that are the same number on both sides. */
const CASTS: Readonly<Record<string, string>> = {
  "i32 f32": "f32(a)",
  "u32 f32": "f32(a)",
  "bool f32": "select(0.0, 1.0, a)",
  "bool i32": "select(0, 1, a)",
  "bool u32": "select(0u, 1u, a)",
  "i32 u32": "bitcast<u32>(a)",
  "u32 i32": "bitcast<i32>(a)",
  // Compilers may take it that there are no NaNs, which are true.
  "f32 bool": "(bitcast<u32>(a) & 0x7fffffffu) != 0u",
  "i32 bool": "a != 0",
  "u32 bool": "a != 0u",
};

function castRule({ inputs: [x], outputs: [y] }: Node): string | undefined {
  return x!.dtype === y!.dtype ? "a" : CASTS[`${x!.dtype} ${y!.dtype}`];
}

/** Kernels of `cast`; what is not finite has no integer in WGSL, so floats become integers on the host. */
export const gpuCastKernels: readonly GpuKernel[] = [{
  name: "gpu_cast",
  when: ({ node }) => hasTypes(node) && castRule(node) !== undefined,
  lower: (lowering) => emitElements(lowering, "cast", { expression: castRule(lowering.node)! }),
}];

/** The loop over x, with numbers of each channel beside it. */
function channelLoop({ inputs: [x, ...others] }: Node): Loop {
  const channels = x!.shape.map((_, axis) => axis === 1 ? 1 : 0);
  return mergedLoop({
    sizes: x!.shape,
    strides: [denseStrides(x!.shape), ...others.map(() => channels)],
  });
}

/** Kernels of `batch_norm`. */
export const gpuBatchNormKernels: readonly GpuKernel[] = [{
  name: "gpu_batch_norm_f32",
  when: ({ node }) => areFloat32(node.inputs) && channelLoop(node).sizes.length <= RANK,
  lower(lowering) {
    const { node } = lowering;
    const constants = { epsilon: node.attributes.epsilon as number };
    const expression = "(a - d) * (b / sqrt(e + params.epsilon)) + c";
    emitElements(lowering, "batch_norm", { expression }, constants, channelLoop(node));
  },
}];

/** The kernel of an op whose nodes are moves; see `moveKernel`. */
export function gpuMoveKernel(
  name: string,
  plan: (node: Node) => Moves | undefined,
): GpuKernel {
  return {
    name,
    when({ node }) {
      const type = TYPES[node.outputs[0]!.dtype];
      if (type === undefined || type === "bool") return false;
      const moves = plan(node)?.moves;
      return moves !== undefined && moves.every((move) => loopOf(move).sizes.length <= RANK);
    },
    lower(lowering) {
      const { moves, fill } = plan(lowering.node)!;
      const whole = { sizes: lowering.node.outputs[0]!.shape, input: fill?.input };
      if (fill) emitFill(lowering, whole);
      for (const move of moves) emitMove(lowering, move);
    },
  };
}

function loopOf({ sizes, from, to }: Move) {
  return mergedLoop({ sizes, strides: [from.strides, to.strides] });
}

/** Elements are moved as words, so that every type is one shader. */
function emitMove(lowering: GpuLowering, move: Move): void {
  const { sizes, strides: [from, to] } = loopOf(move);
  const rank = sizes.length <= 1 ? 1 : RANK;
  const uniforms = loopUniforms(sizes, {
    a: { start: move.from.start, strides: from! },
    y: { start: move.to.start, strides: to! },
  }, rank);
  lowering.emit({
    shader: stridedShader(
      { name: "move", inputs: { a: "u32" }, output: "u32", expression: "a", rank },
      { placed: true },
    ),
    storage: {
      a_in: lowering.slice(lowering.node.inputs[move.input]!),
      y: lowering.slice(lowering.node.outputs[0]!),
    },
    uniforms,
    workgroups: groupsFor(uniforms.count!, STRIDED_BLOCK),
  });
}

function emitFill(
  lowering: GpuLowering,
  { sizes, input }: { readonly sizes: readonly Dim[]; readonly input: number | undefined },
): void {
  const count = product(sizes);
  const inputs: Record<string, StridedType> = input === undefined ? {} : { a: "u32" };
  const operands = input === undefined ? {} : { a: { strides: [0] } };
  lowering.emit({
    shader: stridedShader({
      name: "fill",
      inputs,
      output: "u32",
      expression: input === undefined ? "0u" : "a",
      rank: 1,
    }),
    storage: {
      ...input !== undefined && { a_in: lowering.slice(lowering.node.inputs[input]!) },
      y: lowering.slice(lowering.node.outputs[0]!),
    },
    uniforms: loopUniforms([count], operands, 1),
    workgroups: groupsFor(count, STRIDED_BLOCK),
  });
}
