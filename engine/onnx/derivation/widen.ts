// Constants of half precision as float32 weights: the type says float32, the bytes stay as they lie in the
// file and are decoded, or packed in their own format, when they are loaded.

import { numbersOf } from "../../ops/host_numbers.ts";
import { load } from "./fold.ts";
import type { Tensor } from "./tensor.ts";

/** The constant as float32; itself if it is. */
export function widenedConstant(tensor: Tensor): Tensor {
  const { dtype, shape } = tensor.type;
  if (dtype !== "f16" && dtype !== "bf16") return tensor;
  return {
    kind: "tensor",
    type: { dtype: "f32", shape },
    stored: {
      load() {
        const narrow = load(tensor);
        return { dtype: "f32", shape: narrow.shape, data: Float32Array.from(numbersOf(narrow)) };
      },
      narrow: tensor,
    },
  };
}
