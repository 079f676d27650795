// WGSL that reads keys, values and queries: rows of `width` channels in float32, float16 or blocks of q8_0, by units of
// one or two quads. Widths that are no multiple of 4 are read channel by channel, with zeros behind the end, so that the
// loops of attention know whole quads only.

import { wgsl } from "../wgsl.ts";
import { CACHE_BLOCK, CODES_OF_WORD, scalesOf } from "./cache_blocks.ts";

/** Element types of keys and values. */
export type ChannelType = "f32" | "f16" | "q8_0";

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

/** What is read. */
export interface Channels {
  readonly dtype: ChannelType;
  /** Of a row. */
  readonly width: number;
  /** The binding that holds them; default: the reader's name. */
  readonly memory?: string;
}

/** Reader of rows, by a name of its own. */
export function channelReader(name: string, channels: Channels): ChannelReader {
  const { dtype, width } = channels;
  if (dtype === "f16" && width % 8 === 0) return pairReader(name, channels);
  if (dtype === "q8_0") return blockReader(name, channels);
  const units = Math.ceil(width / 4);
  return {
    type: `array<${elementType(dtype, width)}>`,
    code: wgsl`
      ${width % 4 === 0 ? wholeQuads(name, channels, units) : looseQuads(name, channels)}
    `,
    unitQuads: 1,
    units,
    load: (to, row, unit) => `let ${to}0 = ${name}_quad(${row}, ${unit});`,
  };
}

function elementType(dtype: ChannelType, width: number): string {
  if (width % 4 !== 0) return dtype === "f32" ? "f32" : "u32";
  return dtype === "f32" ? "vec4<f32>" : "vec2<u32>";
}

function pairReader(reader: string, { width, memory = reader }: Channels): ChannelReader {
  return {
    type: "array<vec4<u32>>",
    code: halves(reader),
    unitQuads: 2,
    units: width / 8,
    load: (name, row, unit) =>
      wgsl`
      let ${name}_packed = ${memory}[${row} * ${width / 8}u + ${unit}];
      let ${name}0 = ${reader}_halves(${name}_packed.xy);
      let ${name}1 = ${reader}_halves(${name}_packed.zw);
    `,
  };
}

/** Eight codes and the scale of their block; of keys and values the functions are the same. */
function blockReader(reader: string, { width, memory = reader }: Channels): ChannelReader {
  const units = width / 8, blocks = width / CACHE_BLOCK;
  return {
    type: "array<vec2<u32>>",
    code: wgsl`
      ${reader === "k" ? CODES_OF_WORD : ""}

      fn ${reader}_scale(block: u32) -> f32 {
        return bitcast<f32>(${memory}[${scalesOf(memory)} + (block >> 1u)][block & 1u]);
      }
    `,
    unitQuads: 2,
    units,
    load: (name, row, unit) =>
      wgsl`
      let ${name}_codes = ${memory}[${row} * ${units}u + ${unit}];
      let ${name}_block = ${reader}_scale(${row} * ${blocks}u + ${unit} / ${units / blocks}u);
      let ${name}0 = ${name}_block * codes_of(${name}_codes.x);
      let ${name}1 = ${name}_block * codes_of(${name}_codes.y);
    `,
  };
}

function halves(name: string): string {
  return wgsl`
    fn ${name}_halves(pair: vec2<u32>) -> vec4<f32> {
      return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
    }
  `;
}

function wholeQuads(name: string, { dtype, memory = name }: Channels, units: number): string {
  const element = `${memory}[row * ${units}u + quad]`;
  if (dtype === "f32") {
    return wgsl`
      fn ${name}_quad(row: u32, quad: u32) -> vec4<f32> {
        return ${element};
      }
    `;
  }
  return wgsl`
    ${halves(name)}

    fn ${name}_quad(row: u32, quad: u32) -> vec4<f32> {
      return ${name}_halves(${element});
    }
  `;
}

function looseQuads(name: string, { dtype, width, memory = name }: Channels): string {
  const value = dtype === "f32"
    ? `${memory}[at]`
    : `unpack2x16float(${memory}[at >> 1u] >> ((at & 1u) << 4u)).x`;
  return wgsl`
    fn ${name}_channel(row: u32, channel: u32) -> f32 {
      let at = row * ${width}u + min(channel, ${width - 1}u);
      return select(0.0, ${value}, channel < ${width}u);
    }

    fn ${name}_quad(row: u32, quad: u32) -> vec4<f32> {
      let channel = 4u * quad;
      return vec4<f32>(
        ${name}_channel(row, channel),
        ${name}_channel(row, channel + 1u),
        ${name}_channel(row, channel + 2u),
        ${name}_channel(row, channel + 3u),
      );
    }
  `;
}
