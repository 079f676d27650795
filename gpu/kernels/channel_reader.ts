// WGSL that reads keys, values and queries: rows of `width` channels in float32 or float16, by units of one or
// two quads. Widths that are no multiple of 4 are read channel by channel, with zeros behind the end, so that the
// loops of attention know whole quads only.

import { wgsl } from "../wgsl.ts";

/** Reads rows of one binding. */
export interface ChannelReader {
  /** WGSL type of the binding. */
  readonly type: string;
  /** Functions. */
  readonly code: string;
  /** Quads of a unit. */
  readonly unitQuads: 1 | 2;
  /** Units of a row. */
  readonly units: number;
  /** Statements that define `name0` and, for two quads, `name1`, of unit `unit` of row `row` (expressions). */
  load(name: string, row: string, unit: string): string;
}

/** Reader of a binding. */
export function channelReader(
  binding: string,
  dtype: "f32" | "f16",
  width: number,
): ChannelReader {
  if (dtype === "f16" && width % 8 === 0) return pairReader(binding, width);
  const units = Math.ceil(width / 4);
  return {
    type: `array<${elementType(dtype, width)}>`,
    code: wgsl`
      ${width % 4 === 0 ? wholeQuads(binding, dtype, units) : looseQuads(binding, dtype, width)}
    `,
    unitQuads: 1,
    units,
    load: (name, row, unit) => `let ${name}0 = ${binding}_quad(${row}, ${unit});`,
  };
}

function elementType(dtype: "f32" | "f16", width: number): string {
  if (width % 4 !== 0) return dtype === "f32" ? "f32" : "u32";
  return dtype === "f32" ? "vec4<f32>" : "vec2<u32>";
}

function pairReader(binding: string, width: number): ChannelReader {
  return {
    type: "array<vec4<u32>>",
    code: halves(binding),
    unitQuads: 2,
    units: width / 8,
    load: (name, row, unit) =>
      wgsl`
      let ${name}_packed = ${binding}[${row} * ${width / 8}u + ${unit}];
      let ${name}0 = ${binding}_halves(${name}_packed.xy);
      let ${name}1 = ${binding}_halves(${name}_packed.zw);
    `,
  };
}

function halves(binding: string): string {
  return wgsl`
    fn ${binding}_halves(pair: vec2<u32>) -> vec4<f32> {
      return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
    }
  `;
}

function wholeQuads(binding: string, dtype: "f32" | "f16", units: number): string {
  const element = `${binding}[row * ${units}u + quad]`;
  if (dtype === "f32") {
    return wgsl`
      fn ${binding}_quad(row: u32, quad: u32) -> vec4<f32> {
        return ${element};
      }
    `;
  }
  return wgsl`
    ${halves(binding)}

    fn ${binding}_quad(row: u32, quad: u32) -> vec4<f32> {
      return ${binding}_halves(${element});
    }
  `;
}

function looseQuads(binding: string, dtype: "f32" | "f16", width: number): string {
  const value = dtype === "f32"
    ? `${binding}[at]`
    : `unpack2x16float(${binding}[at >> 1u] >> ((at & 1u) << 4u)).x`;
  return wgsl`
    fn ${binding}_channel(row: u32, channel: u32) -> f32 {
      let at = row * ${width}u + min(channel, ${width - 1}u);
      return select(0.0, ${value}, channel < ${width}u);
    }

    fn ${binding}_quad(row: u32, quad: u32) -> vec4<f32> {
      let channel = 4u * quad;
      return vec4<f32>(
        ${binding}_channel(row, channel),
        ${binding}_channel(row, channel + 1u),
        ${binding}_channel(row, channel + 2u),
        ${binding}_channel(row, channel + 3u),
      );
    }
  `;
}
