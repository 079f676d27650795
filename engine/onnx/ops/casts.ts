// Casts. Version 1 of Cast, which names its type by a word, was never written by an exporter and is left
// out.

import { dataTypeOf } from "../file/data_types.ts";
import type { DataType } from "../../graph/graph.ts";
import { flag, int, required, text } from "../derivation/attributes.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import { isHostTensor, type Tensor } from "../derivation/tensor.ts";
import { readNumbers, writeNumbers } from "./strings/cast_strings.ts";

const rounding = {
  saturate: flag(true, { since: 19 }),
  round_mode: text("up", { choices: ["up", "down", "nearest"], range: { since: 24 } }),
};

/** The element type of a `to` or `dtype` attribute; strings stay on the host. */
export function elementType(call: OnnxCall<unknown>, number: number): DataType {
  const dtype = dataTypeOf(number);
  if (dtype === "string") return call.onHost();
  return dtype ?? call.unsupported(`element type ${number}`);
}

function build(
  call: OnnxCall<{ readonly saturate: boolean; readonly round_mode: string }>,
  to: DataType,
): Tensor[] {
  const x = call.input(0);
  if (x.type.dtype === to) return [x];
  const { saturate, round_mode: round } = call.attributes;
  return [call.one("cast", [x], { to, saturate, round })];
}

/** Ops that change the element type. */
export const castOps: readonly OnnxOp[] = [
  onnxOp("BitCast", {
    versions: [26],
    attributes: { to: required(int()) },
    build(call) {
      const x = call.input(0), to = elementType(call, call.attributes.to);
      return [x.type.dtype === to ? x : call.one("bit_cast", [x], { to })];
    },
  }),
  onnxOp("Cast", {
    versions: [6, 19, 24],
    attributes: { to: required(int()), ...rounding },
    build: (call) => build(call, elementType(call, call.attributes.to)),
    // To or from strings.
    evaluate({ inputs: [x], node, attributes }) {
      const to = dataTypeOf(attributes.to);
      if (isHostTensor(x)) return [writeNumbers(x)];
      if (x?.dtype !== "string" || !to) {
        throw new TypeError(`input 0 of ${node.name} must be a tensor`);
      }
      return [to === "string" ? x : readNumbers(x, to)];
    },
  }),
  onnxOp("CastLike", {
    versions: [15, 19, 24],
    attributes: rounding,
    build: (call) => build(call, call.input(1).type.dtype),
  }),
];
