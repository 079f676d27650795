// rope_table: cosines and sines of position · frequency, once a step for all layers that share their
// frequencies. Angles are computed in float64 because float32 angles lose digits at long contexts. A second set of
// frequencies may count for rows whose whole text is longer than `beyond`; `spans` says how long it is.

import { integer, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { mul } from "../../graph/dim/mod.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, optionalInput, requireEqual, requireInput } from "../shape_rules.ts";

/**
 * (positions i32[M], frequencies f32[d/2], spans i32[M]?, long f32[d/2]?) → f32[M, d]: d/2 cosines, then d/2
 * sines, each · magnitude.
 */
export const ropeTable: OpRecord = defineOp({
  name: "rope_table",
  summary: "cosines and sines of position · frequency, times magnitude",
  attributes: { magnitude: number(1), beyond: integer(0, 0) },
  infer(inputs) {
    checkInputCount(inputs, 4);
    const positions = requireInput(inputs, { index: 0, name: "positions", dtype: "i32", rank: 1 });
    const frequencies = requireInput(inputs, { index: 1, name: "frequencies", rank: 1 });
    const spans = optionalInput(inputs, { index: 2, name: "spans", dtype: "i32", rank: 1 });
    if (spans) {
      const long = requireInput(inputs, { index: 3, name: "long", rank: 1 });
      requireEqual(positions.shape[0]!, {
        b: spans.shape[0]!,
        what: "the positions and the spans",
      });
      requireEqual(frequencies.shape[0]!, {
        b: long.shape[0]!,
        what: "the frequencies of both sets",
      });
    }
    return [{ dtype: "f32", shape: [positions.shape[0]!, mul(frequencies.shape[0]!, 2)] }];
  },
  reference({ inputs, outputs: [out], attributes: { magnitude, beyond } }) {
    const [positions, frequencies, spans, long] = inputs;
    const half = frequencies!.shape[0]!;
    for (let row = 0; row < positions!.shape[0]!; row++) {
      const position = getElement(positions!, row);
      const set = spans && getElement(spans, row) > beyond ? long! : frequencies!;
      for (let i = 0; i < half; i++) {
        const angle = position * getElement(set, i);
        setElement(out!, { index: row * 2 * half + i, value: Math.cos(angle) * magnitude });
        setElement(out!, { index: row * 2 * half + half + i, value: Math.sin(angle) * magnitude });
      }
    }
  },
  cases: (random) =>
    [0, 1, 3, 8].flatMap((rows) =>
      [1, 4, 5, 32].map((half) => {
        const each = (value: () => number) =>
          random.indices(Array.from({ length: rows }, () => value()));
        const constant = (base: number) => ({
          role: "constant" as const,
          dtype: "f32" as const,
          shape: [half],
          data: Float32Array.from({ length: half }, (_, i) => base ** (-i / half)),
        });
        const second = half === 4 ? [each(() => random.integer(30, 34)), constant(500)] : [];
        return {
          name: `${rows} positions, ${half} frequencies`,
          inputs: [each(() => random.integer(0, 131071)), constant(10000), ...second],
          attributes: { magnitude: half === 5 ? 1.25 : 1, beyond: half === 4 ? 32 : 0 },
        };
      })
    ),
  tolerance: { ofLargest: 1e-6, reason: "sines of large angles; float32 sines are that exact" },
});
