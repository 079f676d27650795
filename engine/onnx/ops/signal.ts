// Fourier transforms, windows and mel filters.

import { add, type Dim, floorDiv, mul, sub } from "../../graph/dim/mod.ts";
import { hostArray, setElement } from "../../ops/host_tensor.ts";
import { flag, int } from "../derivation/attributes.ts";
import { applyBinary, applyUnary, castTo } from "../derivation/elementwise.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { elementType } from "./casts.ts";

/** 0, 1, … under a shape. */
function counting(
  call: OnnxCall<unknown>,
  { size, dtype, shape }: {
    readonly size: Dim;
    readonly dtype: "i64" | "f64";
    readonly shape: readonly Dim[];
  },
): Tensor {
  const line = call.one("range", [call.scalar(dtype, 0), call.scalar(dtype, 1)], { size });
  return shape.length === 1 ? line : call.one("reshape", [line], { shape });
}

/** Σ weights[k] · cos(2π · k · n / N), N one less than the size if the window is symmetric. */
function windowOp(name: string, weights: readonly number[]): OnnxOp {
  return onnxOp(name, {
    versions: [17],
    attributes: { output_datatype: int(1), periodic: flag(true) },
    build(call) {
      const { output_datatype, periodic } = call.attributes;
      const size = call.dims(0)[0]!;
      const whole = call.fromDims([periodic ? size : sub(size, 1)], "i64", []);
      const period = castTo(call, { x: whole, to: "f64" });
      const turns = applyBinary(call, {
        kind: "div",
        a: counting(call, { size, dtype: "f64", shape: [size] }),
        b: period,
      });
      const constant = (value: number) => call.scalar("f64", value);
      const terms = weights.map((weight, k) => {
        const angle = applyBinary(call, { kind: "mul", a: turns, b: constant(2 * Math.PI * k) });
        return applyBinary(call, {
          kind: "mul",
          a: applyUnary(call, { kind: "cos", x: angle }),
          b: constant(weight),
        });
      });
      const total = terms.reduce((sum, term) =>
        applyBinary(call, { kind: "add", a: sum, b: term })
      );
      return [castTo(call, { x: total, to: elementType(call, output_datatype) })];
    },
  });
}

// Triangles on the mel scale 2595 · log10(1 + f / 700), their corners on whole rows.
function melFilters(
  { bins, length, rate, low, high }: Readonly<
    Record<"bins" | "length" | "rate" | "low" | "high", number>
  >,
  rows: number,
  set: (row: number, bin: number, weight: number) => void,
): void {
  const mel = (hertz: number) => 2595 * Math.log10(1 + hertz / 700);
  const step = (mel(high) - mel(low)) / (bins + 2);
  const corner = (i: number) => {
    const hertz = 700 * (10 ** ((mel(low) + i * step) / 2595) - 1);
    return Math.floor((length + 1) * hertz / rate);
  };
  for (let bin = 0; bin < bins; bin++) {
    const left = corner(bin), centre = corner(bin + 1), right = corner(bin + 2);
    if (centre === left && centre < rows) set(centre, bin, 1);
    for (let row = left; row <= centre && left < centre; row++) {
      set(row, bin, (row - left) / (centre - left));
    }
    for (let row = centre; row < right; row++) set(row, bin, (right - row) / (right - centre));
  }
}

/** Signal processing. */
export const signalOps: readonly OnnxOp[] = [
  /** The axis was an attribute before it became an input. */
  onnxOp("DFT", {
    versions: [17, 20],
    attributes: { axis: int(1, { until: 19 }), inverse: flag(false), onesided: flag(false) },
    build(call) {
      const x = call.input(0), { inverse, onesided } = call.attributes;
      const given = call.version >= 20
        ? (call.inputs[2] ? call.numbers(2)[0]! : -2)
        : call.attributes.axis;
      const axis = given < 0 ? given + x.type.shape.length : given;
      const size = x.type.shape[axis]!, halved = inverse && onesided;
      const length = call.inputs[1] ? call.dims(1)[0]! : halved ? mul(sub(size, 1), 2) : size;
      return call.op("dft", [x], { axis, length, inverse, onesided });
    },
  }),
  onnxOp("MelWeightMatrix", {
    versions: [17],
    attributes: { output_datatype: int(1) },
    build(call) {
      const numberAt = (index: number) => call.numbers(index)[0]!;
      const bins = numberAt(0), length = numberAt(1), rate = numberAt(2);
      const low = numberAt(3), high = numberAt(4);
      const rows = Math.floor(length / 2) + 1;
      const dtype = elementType(call, call.attributes.output_datatype);
      const matrix = { dtype, shape: [rows, bins], data: hostArray(dtype, { count: rows * bins }) };
      melFilters({ bins, length, rate, low, high }, rows, (row, bin, weight) => {
        setElement(matrix, { index: row * bins + bin, value: weight });
      });
      return [call.constant(matrix)];
    },
  }),
  onnxOp("STFT", {
    versions: [17],
    attributes: { onesided: flag(true) },
    build(call) {
      const signal = call.input(0), window = call.inputs[2];
      const step = call.dims(1)[0]!;
      const length = call.inputs[3] ? call.dims(3)[0]! : window?.type.shape[0] ??
        signal.type.shape[1]!;
      const frames = add(floorDiv(sub(signal.type.shape[1]!, length), step), 1);
      const column = counting(call, { size: frames, dtype: "i64", shape: [frames, 1] });
      const starts = applyBinary(call, {
        kind: "mul",
        a: column,
        b: call.fromDims([step], "i64", []),
      });
      const places = applyBinary(call, {
        kind: "add",
        a: starts,
        b: counting(call, { size: length, dtype: "i64", shape: [1, length] }),
      });
      let framed = call.one("gather", [signal, places], { axis: 1 });
      if (window) {
        const weights = call.one("reshape", [window], { shape: [length, 1] });
        framed = applyBinary(call, { kind: "mul", a: framed, b: weights });
      }
      return call.op("dft", [framed], { axis: 2, length, ...call.attributes });
    },
  }),
  windowOp("BlackmanWindow", [0.42, -0.5, 0.08]),
  windowOp("HammingWindow", [25 / 46, -21 / 46]),
  windowOp("HannWindow", [0.5, -0.5]),
];
