// Reads single elements of packed filters, for shaders that rearrange them while loading.

import { wgsl } from "../../wgsl.ts";
import { list } from "../matmul/rows.ts";
import { quadReader, type WeightReader } from "../matmul/weight_reader.ts";

/** `element(filter, channel, tap)`, of uniforms `channels` and `taps`. */
export function filterReader(layout: string): WeightReader {
  const { unitColumns: unit, storage, code, load } = quadReader(layout, "0u");
  return {
    storage,
    code: wgsl`
      ${code}

      fn element(filter_at: u32, channel: u32, tap: u32) -> f32 {
        let column = channel * params.taps + tap;
        let units = (params.channels * params.taps + ${unit - 1}u) / ${unit}u;
        ${load("q", `filter_at * units + column / ${unit}u`)}
        let quads = array<vec4<f32>, ${unit / 4}>(${list(unit / 4, (i) => `q${i}`).join(", ")});
        return quads[column % ${unit}u / 4u][column % 4u];
      }
    `,
  };
}
