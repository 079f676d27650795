// What WebGPU kernels of elementwise ops with any broadcasting are made of, and kernels of the ops that put elements elsewhere: all are
// one shader with other strides. Arithmetic is on float32 and whole numbers; elements of every type are moved.

import { ELEMENTS, type ElementType } from "../../../../gpu/kernels/element_types.ts";
import {
  STRIDED_BLOCK,
  type StridedRule,
  stridedShader,
} from "../../../../gpu/kernels/strided_map.ts";
import type { GpuDispatch, GpuKernel, GpuLowering } from "../kernel.ts";
import { ceilDiv, type Dim, equal, product } from "../../../graph/dim/mod.ts";
import type { DataType, Node, Value } from "../../../graph/graph.ts";
import { getOp } from "../../../ops/mod.ts";
import { groupsFor } from "./lower.ts";
import { areFloat32, movableBytes } from "../../wasm/lower/strided.ts";
import { type Move, moveLoop, type Moves } from "../../../ops/moves.ts";
import { broadcastLoop, denseStrides, type Loop, mergedLoop } from "../../../ops/strided_loop.ts";

/** Most dims, and those that are nearly always enough: each is a shader of its own. */
const RANK = 6, USUAL_RANK = 4;

/** What expressions call the elements of inputs. */
export const STRIDED_NAMES = ["a", "b", "c", "d", "e"] as const;

/** What lies in memory; small floats are codes. */
const TYPES: Readonly<Partial<Record<DataType, ElementType>>> = {
  ...{ f32: "f32", i32: "i32", u32: "u32", bool: "bool", f16: "f16", bf16: "bf16" },
  ...{ i8: "i8", u8: "u8", i16: "i16", u16: "u16", i64: "pair", u64: "pair", f64: "pair" },
  ...{ i4: "i8", u4: "u8", i2: "i8", u2: "u8" },
};

/** How a value is read and written by what computes with it. */
export function elementTypeOf({ dtype }: Value): ElementType | undefined {
  return TYPES[dtype];
}

/** Types for what moves elements without looking at them, by their bytes. */
const BITS: Readonly<Record<number, ElementType>> = { 1: "u8", 2: "u16", 4: "u32", 8: "pair" };

/** How an element is moved. */
export function bitsOf(value: Value): ElementType | undefined {
  return BITS[movableBytes(value) ?? 0];
}

/** A function of the inputs' elements. */
type Rule = Pick<StridedRule, "expression" | "functions">;

/** What is computed of a node, over which loop. */
interface Elements extends Rule {
  readonly name: string;
  /** Values of f32 uniforms. */
  readonly constants?: Readonly<Record<string, number>>;
  /** Values of u32 uniforms. */
  readonly numbers?: Readonly<Record<string, Dim>>;
  /** Default: the inputs are broadcast to the output. */
  readonly loop?: Loop;
  /** How inputs and output are read and written; default: as numbers. */
  readonly typeOf?: (value: Value) => ElementType;
}

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

/** Emits a function of the inputs. */
export function emitElements(
  lowering: GpuLowering,
  { loop, typeOf = ({ dtype }) => TYPES[dtype]!, constants = {}, numbers = {}, ...rule }: Elements,
): void {
  const { sizes, strides } = loop ?? broadcastLoop(lowering.node);
  const { outputs: [y] } = lowering.node;
  const inputs = lowering.node.inputs.filter((input) => input !== undefined);
  const rank = sizes.length <= 1 ? 1 : sizes.length <= USUAL_RANK ? USUAL_RANK : RANK;
  const slices = inputs.map(lowering.slice);
  // Views may lie in the same memory: it is bound once.
  const firstAt = slices.map(({ buffer, offset }) =>
    slices.findIndex((other) => other.buffer === buffer && other.offset === offset)
  );
  const own = firstAt.every((first, i) => first === i || inputs[first] === inputs[i]);
  const shared = firstAt.flatMap((first, i) =>
    first === i ? [] : [[STRIDED_NAMES[i]!, STRIDED_NAMES[first]!]]
  );
  const shader = stridedShader({
    ...rule,
    inputs: Object.fromEntries(inputs.map((input, i) => [STRIDED_NAMES[i]!, typeOf(input)])),
    shared: Object.fromEntries(shared),
    output: typeOf(y!),
    constants: Object.keys(constants),
    numbers: Object.keys(numbers),
    rank,
  });
  const storage = slices.flatMap((slice, i) =>
    // A copy is not known to be the memory of this input, so other nodes are not lowered like this one.
    firstAt[i] === i ? [[`${STRIDED_NAMES[i]!}_in`, own ? slice : { ...slice }] as const] : []
  );
  const operands = Object.fromEntries(
    strides.map((list, i) => [STRIDED_NAMES[i]!, { strides: list }]),
  );
  const uniforms = loopUniforms(sizes, operands, rank);
  lowering.emit({
    shader,
    storage: { ...Object.fromEntries(storage), y: lowering.slice(y!) },
    uniforms: { ...uniforms, ...constants, ...numbers },
    workgroups: stridedGroups(uniforms.count!, typeOf(y!)),
  });
}

/** Workgroups for so many elements of a result. */
export function stridedGroups(count: Dim, output: ElementType): GpuDispatch["workgroups"] {
  return groupsFor(ceilDiv(count, ELEMENTS[output].perWord), STRIDED_BLOCK);
}

function fitsRank(node: Node): boolean {
  return broadcastLoop(node).sizes.length <= RANK;
}

/** Whether elements of these types can be computed with, in so many dims. */
export function fits(node: Node): boolean {
  const values = [...node.inputs, ...node.outputs];
  return values.every((value) => value && TYPES[value.dtype] !== undefined) && fitsRank(node);
}

/** Kernels of `where`. */
export const gpuWhereKernels: readonly GpuKernel[] = [{
  name: "gpu_where",
  when: ({ node }) => bitsOf(node.outputs[0]!) !== undefined && fitsRank(node),
  lower: (lowering) =>
    emitElements(lowering, {
      ...{ name: "where", expression: "select(c, b, a)" },
      typeOf: (value) => value === lowering.node.inputs[0] ? "bool" : bitsOf(value)!,
    }),
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
    emitElements(lowering, { name: "batch_norm", expression, constants, loop: channelLoop(node) });
  },
}];

/** The kernel of an op whose nodes are moves; see `moveKernel`. */
export function gpuMoveKernel(name: string): GpuKernel {
  const movesOf = (node: Node): Moves | undefined => getOp(node.op).moves?.(node);
  return {
    name,
    when({ node }) {
      const type = bitsOf(node.outputs[0]!), moved = movesOf(node);
      if (type === undefined || !moved) return false;
      // A word of several elements is written by one thread, so there can be but one box, the whole.
      const isWhole = ELEMENTS[type].perWord === 1 || isOneBox(node, moved);
      return isWhole && moved.moves.every((move) => moveLoop(move).sizes.length <= RANK);
    },
    lower(lowering) {
      const { moves, fill } = movesOf(lowering.node)!;
      const whole = { sizes: lowering.node.outputs[0]!.shape, input: fill?.input };
      if (fill) emitFill(lowering, whole);
      for (const move of moves) emitMove(lowering, move);
    },
  };
}

function isOneBox({ outputs: [y] }: Node, { moves: [move, ...others], fill }: Moves): boolean {
  if (!move || others.length > 0 || fill) return false;
  const { sizes, to } = move;
  const dense = denseStrides(y!.shape);
  return sizes.length === dense.length && equal(to.start, 0) &&
    sizes.every((size, axis) =>
      equal(size, y!.shape[axis]!) && (equal(size, 1) || equal(to.strides[axis]!, dense[axis]!))
    );
}

/** Elements are moved as bits, so that types of one size are one shader. */
function emitMove(lowering: GpuLowering, move: Move): void {
  const { inputs, outputs: [y] } = lowering.node;
  const { sizes, strides: [from, to] } = moveLoop(move);
  const rank = sizes.length <= 1 ? 1 : RANK, type = bitsOf(y!)!;
  const placed = ELEMENTS[type].perWord === 1;
  const uniforms = loopUniforms(sizes, {
    a: { start: move.from.start, strides: from! },
    ...placed && { y: { start: move.to.start, strides: to! } },
  }, rank);
  lowering.emit({
    shader: stridedShader(
      { name: "move", inputs: { a: type }, output: type, expression: "a", rank },
      { placed },
    ),
    storage: { a_in: lowering.slice(inputs[move.input]!), y: lowering.slice(y!) },
    uniforms,
    workgroups: stridedGroups(uniforms.count!, type),
  });
}

function emitFill(
  lowering: GpuLowering,
  { sizes, input }: { readonly sizes: readonly Dim[]; readonly input: number | undefined },
): void {
  const count = product(sizes), type = bitsOf(lowering.node.outputs[0]!)!;
  const inputs: Record<string, ElementType> = input === undefined ? {} : { a: type };
  const operands: Record<string, Operand> = input === undefined ? {} : { a: { strides: [0] } };
  lowering.emit({
    shader: stridedShader({
      name: "fill",
      inputs,
      output: type,
      expression: input === undefined ? `${ELEMENTS[type].value}()` : "a",
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
