// NonMaxSuppression: how many boxes stay is known only from their numbers, so it runs on the host.

import { getElement, type HostTensor } from "../../ops/host_tensor.ts";
import { flag } from "../derivation/attributes.ts";
import { type HostCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import { isHostTensor } from "../derivation/tensor.ts";

interface Box {
  readonly top: number;
  readonly left: number;
  readonly bottom: number;
  readonly right: number;
}

function scalarOf(call: HostCall<unknown>, index: number): number | undefined {
  const value = call.inputs[index];
  return isHostTensor(value) && value.data.length > 0 ? getElement(value, 0) : undefined;
}

function boxAt(boxes: HostTensor, index: number, centred: boolean): Box {
  const [a, b, c, d] = [0, 1, 2, 3].map((i) => getElement(boxes, 4 * index + i)) as [
    number,
    number,
    number,
    number,
  ];
  if (centred) {
    return { top: b - d / 2, left: a - c / 2, bottom: b + d / 2, right: a + c / 2 };
  }
  return {
    top: Math.min(a, c),
    left: Math.min(b, d),
    bottom: Math.max(a, c),
    right: Math.max(b, d),
  };
}

/** Common area over joint area. */
function overlapOf(a: Box, b: Box): number {
  const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  const area = (box: Box) => (box.bottom - box.top) * (box.right - box.left);
  return height * width / (area(a) + area(b) - height * width);
}

/** Detection. */
export const detectionOps: readonly OnnxOp[] = [
  onnxOp("NonMaxSuppression", {
    versions: [10, 11],
    attributes: { center_point_box: flag(false) },
    evaluate(call) {
      const boxes = call.tensor(0), scores = call.tensor(1);
      const most = scalarOf(call, 2) ?? 0, overlap = scalarOf(call, 3) ?? 0;
      const least = scalarOf(call, 4) ?? -Infinity;
      const [batches, count] = boxes.shape as [number, number];
      const classes = scores.shape[1]!;
      const kept: number[] = [];
      for (let batch = 0; batch < batches; batch++) {
        const all = Array.from(
          { length: count },
          (_, i) => boxAt(boxes, batch * count + i, call.attributes.center_point_box),
        );
        for (let of = 0; of < classes; of++) {
          const start = (batch * classes + of) * count;
          const score = (i: number) => getElement(scores, start + i);
          const order = all.map((_, i) => i).filter((i) => score(i) > least)
            .sort((a, b) => score(b) - score(a) || a - b);
          const chosen: number[] = [];
          for (const i of order) {
            if (chosen.length >= most) break;
            if (chosen.every((j) => overlapOf(all[i]!, all[j]!) <= overlap)) chosen.push(i);
          }
          for (const i of chosen) kept.push(batch, of, i);
        }
      }
      return [{
        dtype: "i64",
        shape: [kept.length / 3, 3],
        data: BigInt64Array.from(kept, BigInt),
      }];
    },
  }),
];
