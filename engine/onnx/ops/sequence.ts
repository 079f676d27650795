// Sequences: lists of tensors, which exist on the host only. Nothing is copied but what a tensor op must.

import { elementCount, getElement, type HostTensor } from "../../ops/host_tensor.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import { graph, int } from "../derivation/attributes.ts";
import {
  applyOnHost,
  scalarTensor,
  singleElement,
  slicePart,
  stack,
  withShape,
} from "../derivation/host_tensors.ts";
import { type HostCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import { type HostValue, isHostTensor, type SequenceValue } from "../derivation/tensor.ts";

function partSizes(split: HostTensor | undefined, total: number): number[] {
  if (split && split.shape.length > 0) {
    const sizes = Array.from({ length: elementCount(split.shape) }, (_, i) => getElement(split, i));
    const sum = sizes.reduce((a, b) => a + b, 0);
    if (sum !== total || sizes.some((size) => size < 0)) {
      throw new RangeError(`cannot split ${total} entries into ${sizes.join(", ")}`);
    }
    return sizes;
  }
  const size = split ? singleElement(split, "the size of a part") : 1;
  if (!(size >= 1)) throw new RangeError(`cannot split into parts of ${size}`);
  return Array.from(
    { length: Math.ceil(total / size) },
    (_, i) => Math.min(size, total - i * size),
  );
}

function sequenceOf({ inputs: [value], node }: HostCall): SequenceValue {
  if (value?.dtype === "sequence") return value;
  throw new TypeError(`input 0 of ${node.name} must be a sequence`);
}

function position(
  call: HostCall,
  { index, length, most }: {
    readonly index: number;
    readonly length: number;
    readonly most: number;
  },
): number {
  const written = singleElement(call.tensor(index), "a position");
  const at = written < 0 ? written + length : written;
  if (at >= 0 && at <= most) return at;
  throw new RangeError(`position ${written} is outside a sequence of ${length}`);
}

/** Ops on sequences. */
export const sequenceOps: readonly OnnxOp[] = [
  /** ConcatFromSequence: along an axis that is there, or a new one. */
  onnxOp("ConcatFromSequence", {
    versions: [11],
    attributes: { axis: int(0), new_axis: int(0) },
    evaluate(call) {
      const tensors = sequenceOf(call).items.filter(isHostTensor);
      if (tensors.length === 0) throw new RangeError("cannot join an empty sequence of tensors");
      const { axis, new_axis } = call.attributes;
      const rank = tensors[0]!.shape.length;
      if (new_axis) return [stack(tensors, axisOf(axis, rank + 1))];
      return [applyOnHost("concat", { inputs: tensors, given: { axis: axisOf(axis, rank) } })];
    },
  }),
  onnxOp("SequenceAt", {
    versions: [11],
    evaluate(call) {
      const { items } = sequenceOf(call);
      return [items[position(call, { index: 1, length: items.length, most: items.length - 1 })]!];
    },
  }),
  onnxOp("SequenceConstruct", {
    versions: [11],
    evaluate: ({ inputs }) => [{ dtype: "sequence", items: inputs.map((value) => value!) }],
  }),
  onnxOp("SequenceEmpty", {
    versions: [11],
    attributes: { dtype: int(1) },
    evaluate: () => [{ dtype: "sequence", items: [] }],
  }),
  /** SequenceErase: the last unless a position is given. */
  onnxOp("SequenceErase", {
    versions: [11],
    evaluate(call) {
      const { items } = sequenceOf(call);
      const at = call.inputs[1]
        ? position(call, { index: 1, length: items.length, most: items.length - 1 })
        : items.length - 1;
      return [{ dtype: "sequence", items: items.toSpliced(at, 1) }];
    },
  }),
  /** SequenceInsert: at the end unless a position is given. */
  onnxOp("SequenceInsert", {
    versions: [11],
    evaluate(call) {
      const { items } = sequenceOf(call);
      const at = call.inputs[2]
        ? position(call, { index: 2, length: items.length, most: items.length })
        : items.length;
      return [{ dtype: "sequence", items: items.toSpliced(at, 0, call.inputs[1]!) }];
    },
  }),
  onnxOp("SequenceLength", {
    versions: [11],
    evaluate: (call) => [scalarTensor("i64", sequenceOf(call).items.length)],
  }),
  /** SequenceMap: a body for every item. */
  onnxOp("SequenceMap", {
    versions: [17],
    attributes: { body: graph() },
    async evaluate(call) {
      const { body } = call.attributes;
      const { items } = sequenceOf(call);
      const results: HostValue[][] = body.outputs.map(() => []);
      for (let i = 0; i < items.length; i++) {
        const inputs = call.inputs.map((value): HostValue =>
          value?.dtype === "sequence" ? value.items[i]! : value!
        );
        (await call.run(body, inputs)).forEach((value, output) => results[output]!.push(value));
      }
      return results.map((list): SequenceValue => ({ dtype: "sequence", items: list }));
    },
  }),
  /** SplitToSequence: parts of given sizes, or of one size; without either, single entries. */
  onnxOp("SplitToSequence", {
    versions: [11, 24],
    attributes: { axis: int(0), keepdims: int(1) },
    evaluate(call) {
      const x = call.tensor(0);
      const axis = axisOf(call.attributes.axis, x.shape.length);
      const total = x.shape[axis]!;
      const split = call.inputs[1] ? call.tensor(1) : undefined;
      const sizes = partSizes(split, total);
      let start = 0;
      const items = sizes.map((size) => {
        const part = slicePart(x, { axis, start, size });
        start += size;
        return split || call.attributes.keepdims
          ? part
          : withShape(part, part.shape.toSpliced(axis, 1));
      });
      return [{ dtype: "sequence", items }];
    },
  }),
];
