// WGSL that reads packed weights, generated from the layout: the one place where shaders know how codes and
// scales lie. Integer kernels take a group's codes as bytes and its scales; float kernels take quads, four
// neighbouring columns as a vec4<f32>, exactly the numbers of the file.
//
// Scales are read from 32-bit words, so no kernel needs the f16 extension to read weights.

import type { CodeLayout } from "../code_layouts.ts";
import { codeLayout, gpuLayout } from "../weight_layout.ts";
import { float, wgsl } from "../wgsl.ts";

/** What a shader needs to read a weight: bindings, in the order of the layout's planes, and functions. */
export interface WeightReader {
  /** WGSL types of the planes by variable name. */
  readonly storage: Readonly<Record<string, string>>;
  /** Functions. */
  readonly code: string;
}

/** Names of a layout's planes as bindings. */
export function planeNames(layoutId: string): string[] {
  const layout = codeLayout(layoutId);
  if (!layout) return ["w_values"];
  return ["w_codes", ...layout.bits === 5 || layout.bits === 6 ? ["w_high"] : [], "w_scales"];
}

/**
 * Reads groups of 32 columns of codes; `index` is row · K/32 + group.
 * - `weight_codes(index) -> Codes`: bytes of columns 0..15 and 16..31;
 * - `weight_scales(index) -> vec2<f32>`: (s, m) with x = s code + m, or the scales of both halves (`k16`);
 * - `weight_scale_pair(index) -> vec4<f32>`: those of two groups, `index` being even.
 */
export function codeReader(layout: CodeLayout): WeightReader {
  const { bits } = layout;
  return {
    storage: {
      w_codes: "array<vec4<u32>>",
      ...bits === 5 ? { w_high: "array<u32>" } : {},
      ...bits === 6 ? { w_high: "array<vec2<u32>>" } : {},
      w_scales: "array<u32>",
    },
    code: wgsl`
      struct Codes { low: vec4<u32>, high: vec4<u32> }

      fn weight_codes(index: u32) -> Codes {
        ${CODES[bits]}
      }

      fn weight_scales(index: u32) -> vec2<f32> {
        ${scales(layout)}
      }

      fn weight_scale_pair(index: u32) -> vec4<f32> {
        ${scalePair(layout)}
      }
    `,
  };
}

const NIBBLES = wgsl`
  let packed = w_codes[index];
  let low = packed & vec4<u32>(0x0f0f0f0fu);
  let high = (packed >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
`;

const CODES: Readonly<Record<CodeLayout["bits"], string>> = {
  4: wgsl`
    ${NIBBLES}
    return Codes(low, high);
  `,
  5: wgsl`
    ${NIBBLES}
    let bits = vec4<u32>(w_high[index]);
    return Codes(
      low | (((bits >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(0x01010101u)) << vec4<u32>(4u)),
      high | (((bits >> vec4<u32>(4u, 5u, 6u, 7u)) & vec4<u32>(0x01010101u)) << vec4<u32>(4u)),
    );
  `,
  6: wgsl`
    ${NIBBLES}
    let bits = w_high[index];
    let by = vec4<u32>(0u, 2u, 4u, 6u);
    return Codes(
      low | (((vec4<u32>(bits.x) >> by) & vec4<u32>(0x03030303u)) << vec4<u32>(4u)),
      high | (((vec4<u32>(bits.y) >> by) & vec4<u32>(0x03030303u)) << vec4<u32>(4u)),
    );
  `,
  8: `return Codes(w_codes[2u * index], w_codes[2u * index + 1u]);`,
};

function scales({ scales, offset }: CodeLayout): string {
  if (scales === "d") {
    return wgsl`
      let pair = w_scales[index >> 1u] >> ((index & 1u) << 4u);
      let d = unpack2x16float(pair).x;
      return vec2<f32>(d, ${float(-offset)} * d);
    `;
  }
  if (scales === "dm") return `return unpack2x16float(w_scales[index]);`;
  return wgsl`
    ${BLOCK}
    let pair = pairs >> ((index & 1u) << 4u);
    ${scales === "k" ? AFFINE : SIGNED}
  `;
}

/** Scales of a group of the K formats out of a 16-bit pair and the block's float16 pair. */
const BLOCK = wgsl`
  let block = 5u * (index >> 3u);
  let d = unpack2x16float(w_scales[block]);
  let pairs = w_scales[block + 1u + ((index & 7u) >> 1u)];
`;
const AFFINE = "return vec2<f32>(d.x * f32(pair & 0xffu), -d.y * f32((pair >> 8u) & 0xffu));";
const SIGNED = wgsl`
  let raised = vec2<u32>(pair << 24u, pair << 16u);
  return d.x * vec2<f32>(vec2<i32>(raised) >> vec2<u32>(24u));
`;

function scalePair({ scales, offset }: CodeLayout): string {
  if (scales === "d") {
    return wgsl`
      let d = unpack2x16float(w_scales[index >> 1u]);
      let m = ${float(-offset)} * d;
      return vec4<f32>(d.x, m.x, d.y, m.y);
    `;
  }
  if (scales === "dm") {
    return wgsl`
      return vec4<f32>(
        unpack2x16float(w_scales[index]), unpack2x16float(w_scales[index + 1u]),
      );
    `;
  }
  if (scales === "k") {
    return wgsl`
      ${BLOCK}
      let bytes = vec4<f32>((vec4<u32>(pairs) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(0xffu));
      return vec4<f32>(d.x, -d.y, d.x, -d.y) * bytes;
    `;
  }
  return wgsl`
    ${BLOCK}
    let raised = vec4<u32>(pairs) << vec4<u32>(24u, 16u, 8u, 0u);
    return d.x * vec4<f32>(vec4<i32>(raised) >> vec4<u32>(24u));
  `;
}

/** Reads quads of a layout of any kind, a unit at a time. */
export interface QuadReader extends WeightReader {
  /** Columns of a unit: what one step of a float kernel reads of a row. */
  readonly unitColumns: number;
  /**
   * Statements that define `name0`, `name1`, …, the quads of unit `index` (an expression; the number of the
   * row times the units of a row, plus the unit).
   */
  load(name: string, index: string): string;
}

/**
 * Reader of quads.
 *
 * @throws {RangeError} If there is no such layout.
 */
export function quadReader(layoutId: string): QuadReader {
  const layout = codeLayout(layoutId);
  if (layout) return codeQuads(layout);
  const { id } = gpuLayout(layoutId);
  return FLOAT_QUADS[id]!;
}

const FLOAT_QUADS: Readonly<Record<string, QuadReader>> = {
  f32: {
    unitColumns: 4,
    storage: { w_values: "array<vec4<f32>>" },
    code: "",
    load: (name, index) => `let ${name}0 = w_values[${index}];`,
  },
  f16: {
    unitColumns: 8,
    storage: { w_values: "array<vec4<u32>>" },
    code: wgsl`
      fn halves(pair: vec2<u32>) -> vec4<f32> {
        return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
      }
    `,
    load: loadHalves,
  },
  bf16: {
    unitColumns: 8,
    storage: { w_values: "array<vec4<u32>>" },
    code: wgsl`
      fn halves(pair: vec2<u32>) -> vec4<f32> {
        let parts = vec4<u32>(pair.x << 16u, pair.x, pair.y << 16u, pair.y);
        return bitcast<vec4<f32>>(parts & vec4<u32>(0xffff0000u));
      }
    `,
    load: loadHalves,
  },
};

function loadHalves(name: string, index: string): string {
  return wgsl`
    let ${name}_packed = w_values[${index}];
    let ${name}0 = halves(${name}_packed.xy);
    let ${name}1 = halves(${name}_packed.zw);
  `;
}

const UNSIGNED_BYTES =
  "return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(0xffu));";
const SIGNED_BYTES = wgsl`
  let raised = vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u);
  return vec4<f32>(vec4<i32>(raised) >> vec4<u32>(24u));
`;

function codeQuads(layout: CodeLayout): QuadReader {
  const { storage, code } = codeReader(layout);
  return {
    unitColumns: 32,
    storage,
    code: wgsl`
      ${code}

      fn bytes_of(word: u32) -> vec4<f32> {
        ${layout.bits === 8 ? SIGNED_BYTES : UNSIGNED_BYTES}
      }
    `,
    load(name, index) {
      const value = (half: 0 | 1, component: string) => {
        const bytes = `bytes_of(${name}_codes.${half ? "high" : "low"}.${component})`;
        if (layout.scales === "k16") {
          const scale = `${name}_scales.${half ? "y" : "x"}`;
          return `${scale} * (${bytes} - vec4<f32>(${float(layout.offset)}))`;
        }
        return `${name}_scales.x * ${bytes} + vec4<f32>(${name}_scales.y)`;
      };
      const quads = Array.from(
        { length: 8 },
        (_, q) => `let ${name}${q} = ${value(q < 4 ? 0 : 1, "xyzw"[q % 4]!)};`,
      );
      return wgsl`
        let ${name}_codes = weight_codes(${index});
        let ${name}_scales = weight_scales(${index});
        ${quads}
      `;
    },
  };
}
