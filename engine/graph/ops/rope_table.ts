// rope_table: cosines and sines of position · frequency, once a step for all layers that share their
// frequencies. Angles are computed in float64 because float32 angles lose digits at long contexts.

import { number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { mul } from "../dim.ts";
import { getElement, setElement } from "../host_tensor.ts";
import { emit, hasStaticColumns, inputAddress, outputAddress } from "../lower_wasm.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (positions i32[M], frequencies f32[d/2]) → f32[M, d]: d/2 cosines, then d/2 sines, each · magnitude. */
export const ropeTable: OpRecord = defineOp({
  name: "rope_table",
  summary: "cosines and sines of position · frequency, times magnitude",
  attributes: { magnitude: number(1) },
  infer(inputs) {
    checkInputCount(inputs, 2);
    const positions = requireInput(inputs, 0, "positions", { dtype: "i32", rank: 1 });
    const frequencies = requireInput(inputs, 1, "frequencies", { rank: 1 });
    return [{ dtype: "f32", shape: [positions.shape[0]!, mul(frequencies.shape[0]!, 2)] }];
  },
  reference({ inputs: [positions, frequencies], outputs: [out], attributes: { magnitude } }) {
    const half = frequencies!.shape[0]!;
    for (let row = 0; row < positions!.shape[0]!; row++) {
      const position = getElement(positions!, row);
      for (let i = 0; i < half; i++) {
        const angle = position * getElement(frequencies!, i);
        setElement(out!, row * 2 * half + i, Math.cos(angle) * magnitude);
        setElement(out!, row * 2 * half + half + i, Math.sin(angle) * magnitude);
      }
    }
  },
  cases: (random) =>
    [0, 1, 3, 8].flatMap((rows) =>
      [1, 4, 5, 32].map((half) => ({
        name: `${rows} positions, ${half} frequencies`,
        inputs: [
          random.indices(Array.from({ length: rows }, () => random.integer(0, 131071))),
          {
            role: "constant" as const,
            dtype: "f32" as const,
            shape: [half],
            data: Float32Array.from({ length: half }, (_, i) => 10000 ** (-i / half)),
          },
        ],
        attributes: { magnitude: half === 5 ? 1.25 : 1 },
      }))
    ),
  tolerance: { ofLargest: 1e-6, reason: "sines of large angles; float32 sines are that exact" },
  kernels: {
    wasm: [
      {
        name: "rope_table_f32",
        when: (context) => hasStaticColumns(context, 1),
        lower(lowering) {
          const { inputs: [positions, frequencies], attributes } = lowering.node;
          emit(lowering, "rope_table", {
            positions: inputAddress(lowering, 0),
            frequencies: inputAddress(lowering, 1),
            y: outputAddress(lowering),
            rows: positions!.shape[0]!,
            pairs: frequencies!.shape[0]!,
            magnitude: attributes.magnitude as number,
          });
        },
      },
    ],
    gpu: [],
  },
});
