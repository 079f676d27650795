// Ops on two tensors that broadcast, and their sums over many inputs. Up to version 6 of the operator set
// broadcasting had to be asked for and aligned the second tensor at an axis.

import { BINARY, BINARY_NAMES, type BinaryName } from "../../../functions/binary.ts";
import { elementCount } from "../../ops/host_tensor.ts";
import { broadcastShapes } from "../../ops/shape_rules.ts";
import { broadcastStrides, walk } from "../../ops/strided.ts";
import { int, ints, required, text } from "../derivation/attributes.ts";
import { applyBinary, applyUnary, knownScalar } from "../derivation/elementwise.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";

const consumed = { consumed_inputs: ints(undefined, { until: 5 }) };
const legacy = { ...consumed, axis: int(undefined, { until: 6 }), broadcast: int(0, { until: 6 }) };

/** Both inputs, the second one aligned as old versions ask for. */
function operands(
  call: OnnxCall<{ readonly axis?: number | undefined; readonly broadcast?: number }>,
): [Tensor, Tensor] {
  const a = call.input(0), b = call.input(1);
  const { axis } = call.attributes;
  if (axis === undefined || !call.attributes.broadcast) return [a, b];
  const { shape } = b.type;
  const at = axis < 0 ? axis + a.type.shape.length : axis;
  const behind = a.type.shape.length - at - shape.length;
  if (behind < 0) throw new RangeError(`b has too many dims to be broadcast from axis ${axis}`);
  if (behind === 0) return [a, b];
  return [a, call.one("reshape", [b], { shape: [...shape, ...Array<number>(behind).fill(1)] })];
}

function variadic(name: string, kind: BinaryName): OnnxOp {
  return onnxOp(name, {
    versions: [1, 6, 8],
    attributes: consumed,
    build: (call) => [foldInputs(call, kind)],
  });
}

function foldInputs(call: OnnxCall<unknown>, kind: BinaryName): Tensor {
  return call.inputs.map((_, index) => call.input(index))
    .reduce((total, next) => applyBinary(call, { kind, a: total, b: next }));
}

/** Ops of two and more inputs that broadcast. */
export const binaryOps: readonly OnnxOp[] = [
  ...BINARY_NAMES.flatMap((kind) => {
    const { onnx } = BINARY[kind];
    if (!onnx) return [];
    const [name, versions] = onnx;
    return [onnxOp(name, {
      versions,
      attributes: versions[0] === 1 ? legacy : {},
      build(call) {
        const [a, b] = operands(call);
        return [applyBinary(call, { kind, a, b })];
      },
    })];
  }),
  onnxOp("BitShift", {
    versions: [11],
    attributes: { direction: required(text(undefined, { choices: ["LEFT", "RIGHT"] })) },
    build(call) {
      const kind = call.attributes.direction === "LEFT" ? "shift_left" : "shift_right";
      return [applyBinary(call, { kind, a: call.input(0), b: call.input(1) })];
    },
  }),
  /** Equal: strings are compared on the host. */
  onnxOp("Equal", {
    versions: [1, 7],
    attributes: { axis: legacy.axis, broadcast: legacy.broadcast },
    build(call) {
      const [a, b] = operands(call);
      return [applyBinary(call, { kind: "equal", a, b })];
    },
    evaluate({ inputs: [a, b] }) {
      if (a?.dtype !== "string" || b?.dtype !== "string") {
        throw new TypeError("strings can be compared with strings only");
      }
      const shape = broadcastShapes(a.shape, b.shape) as number[];
      const data = new Uint8Array(elementCount(shape));
      const strides = [broadcastStrides(a.shape, shape), broadcastStrides(b.shape, shape)];
      walk(shape, {
        strides,
        visit: (index, offsets) => {
          data[index] = Number(a.data[offsets[0]!] === b.data[offsets[1]!]);
        },
      });
      return [{ dtype: "bool", shape, data }];
    },
  }),
  onnxOp("Mean", {
    versions: [1, 6, 8],
    attributes: consumed,
    build(call) {
      const total = foldInputs(call, "add");
      const count = call.inputs.length;
      return [
        count === 1
          ? total
          : applyBinary(call, { kind: "div", a: total, b: call.scalar(total.type.dtype, count) }),
      ];
    },
  }),
  onnxOp("Mod", {
    versions: [10],
    attributes: { fmod: int(0) },
    build(call) {
      const kind = call.attributes.fmod ? "fmod" : "mod";
      return [applyBinary(call, { kind, a: call.input(0), b: call.input(1) })];
    },
  }),
  onnxOp("Pow", {
    versions: [1, 7],
    attributes: { axis: legacy.axis, broadcast: legacy.broadcast },
    build(call) {
      const [base, exponent] = operands(call);
      // Squares and roots, as exporters write norms, without the general power.
      const known = knownScalar(exponent), isScalar = exponent.type.shape.length === 0;
      if (isScalar && base.type.dtype === "f32") {
        if (known === 2) return [applyBinary(call, { kind: "mul", a: base, b: base })];
        if (known === 0.5) return [applyUnary(call, { kind: "root", x: base })];
      }
      return [applyBinary(call, { kind: "pow", a: base, b: exponent })];
    },
  }),
  /** PRelu: before version 7 the slopes are one a channel, the dim at 1. */
  onnxOp("PRelu", {
    versions: [1, 6, 7],
    attributes: consumed,
    build(call) {
      const x = call.input(0), slope = call.input(1);
      const perChannel = call.version < 7 && slope.type.shape.length === 1 &&
        x.type.shape.length > 2;
      const shape = [...slope.type.shape, ...x.type.shape.slice(2).map(() => 1)];
      const aligned = perChannel ? call.one("reshape", [slope], { shape }) : slope;
      return [applyBinary(call, { kind: "prelu", a: x, b: aligned })];
    },
  }),
  variadic("Max", "max"),
  variadic("Min", "min"),
  variadic("Sum", "add"),
  onnxOp("Where", {
    versions: [9],
    moves: true,
    build: (call) => call.op("where", [call.input(0), call.input(1), call.input(2)]),
  }),
];
