// Quads of layouts that hold plain numbers: float32, 16-bit floats, bytes whose values are a table.

import { wgsl } from "../wgsl.ts";

/** What a shader needs to read a weight: bindings, in the order of the layout's planes, and functions. */
export interface WeightReader {
  /** WGSL types of the planes by variable name. */
  readonly storage: Readonly<Record<string, string>>;
  /** Functions. */
  readonly code: string;
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
  /** Where units are `w_values: vec4<u32>` of two columns a word: both columns of a word, an expression of `vec2<f32>`. */
  readonly pair?: (word: string) => string;
}

/** Readers by id of the layout. */
export const FLOAT_QUADS: Readonly<Record<string, QuadReader>> = {
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
    pair: (word) => `unpack2x16float(${word})`,
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
    pair: (word) => `bitcast<vec2<f32>>(vec2<u32>(${word} << 16u, ${word} & 0xffff0000u))`,
  },
  log8: {
    unitColumns: 16,
    storage: { w_values: "array<vec4<u32>>", w_table: "array<f32>" },
    code: wgsl`
      fn values_of(word: u32) -> vec4<f32> {
        let bytes = (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(0xffu);
        return vec4<f32>(w_table[bytes.x], w_table[bytes.y], w_table[bytes.z], w_table[bytes.w]);
      }
    `,
    load: loadBytes,
  },
};

function loadBytes(name: string, index: string): string {
  const quads = Array.from(
    "xyzw",
    (component, q) => `let ${name}${q} = values_of(${name}_packed.${component});`,
  );
  return wgsl`
    let ${name}_packed = w_values[${index}];
    ${quads}
  `;
}

function loadHalves(name: string, index: string): string {
  return wgsl`
    let ${name}_packed = w_values[${index}];
    let ${name}0 = halves(${name}_packed.xy);
    let ${name}1 = halves(${name}_packed.zw);
  `;
}
