// WGSL that reads packed weights, generated from the layout: the one place where shaders know how codes and
// scales lie. Integer kernels take a group's codes as bytes (weight_codes.ts) and its scales (weight_scales.ts);
// float kernels take quads, four neighbouring columns as a vec4<f32>, exactly the numbers of the file.

import { type CodeLayout, GROUP_COLUMNS, scaleFacts } from "../layouts/code_layout.ts";
import { CODE_KINDS } from "../layouts/code_planes.ts";
import { codeLayout, gpuLayout } from "../weight_layout.ts";
import { float, wgsl } from "../wgsl.ts";
import { codeFunctions, codeStorage, isSigned } from "./weight_codes.ts";
import { levelStep, scaleFunctions } from "./weight_scales.ts";

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
  if (!layout) return ["w_values", ...gpuLayout(layoutId).table ? ["w_table"] : []];
  return [
    ...CODE_KINDS[layout.codes].map(({ name }) => name),
    "w_scales",
    ...layout.table ? ["w_table"] : [],
  ];
}

/**
 * Reads groups of 32 columns of codes: `weight_codes(index)` and `weight_scales(index)`, index being row · K/32 +
 * group; see weight_codes.ts and weight_scales.ts.
 *
 * @param groups Groups of a row as an expression.
 * @param of What scales are for: `levels` are the floats that codes of E0M4 are made.
 */
export function codeReader(
  layout: CodeLayout,
  groups: string,
  of: "codes" | "levels" = "codes",
): WeightReader {
  return {
    storage: {
      ...codeStorage(layout.codes),
      w_scales: "array<u32>",
      ...layout.table ? { w_table: "array<u32>" } : {},
    },
    code: wgsl`
      ${codeFunctions(layout.codes)}

      ${scaleFunctions(layout, groups, of)}
    `,
  };
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
 * @param units Units of a row as an expression.
 * @throws {RangeError} If there is no such layout.
 */
export function quadReader(layoutId: string, units: string): QuadReader {
  const layout = codeLayout(layoutId);
  if (layout) return codeQuads(layout, units);
  const { id } = gpuLayout(layoutId);
  return FLOAT_QUADS[id]!;
}

/** Columns of a unit of a layout. */
export function unitColumns(layoutId: string): number {
  return codeLayout(layoutId) ? GROUP_COLUMNS : FLOAT_QUADS[gpuLayout(layoutId).id]!.unitColumns;
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

/** Four bytes of a word as numbers. */
function bytesOf({ codes, scales }: CodeLayout): string {
  if (scales === "e1" || scales === "e2") {
    // A code is the fraction of a float between 2ⁿ and 2ⁿ⁺¹: no integer is converted.
    const exponent = Math.log2(16 * levelStep(scales)) + 127;
    return wgsl`
      let raised = vec4<u32>(word << 19u, word << 11u, word << 3u, word >> 5u);
      return bitcast<vec4<f32>>((raised & vec4<u32>(0x00780000u)) | vec4<u32>(${exponent}u << 23u));
    `;
  }
  if (isSigned(codes)) {
    return wgsl`
      let raised = vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u);
      return vec4<f32>(vec4<i32>(raised) >> vec4<u32>(24u));
    `;
  }
  return "return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(0xffu));";
}

/** The value of a quad of bytes in a half of a group, by the group's scales. */
function valueOf(layout: CodeLayout, half: 0 | 1, { bytes, scales }: {
  readonly bytes: string;
  readonly scales: string;
}): string {
  const { covers, minima } = scaleFacts(layout);
  if (covers === "signs") {
    return `${bytes} * select(vec4<f32>(${scales}.y), vec4<f32>(${scales}.x), ${bytes} > vec4<f32>())`;
  }
  const [scale, minimum] = covers === "group" || half === 0 ? ["x", "y"] : ["z", "w"];
  if (covers === "group" || minima) {
    return `${scales}.${scale} * ${bytes} + vec4<f32>(${scales}.${minimum})`;
  }
  return `${scales}.${half ? "y" : "x"} * (${bytes} - vec4<f32>(${float(layout.offset)}))`;
}

function codeQuads(layout: CodeLayout, units: string): QuadReader {
  const { storage, code } = codeReader(layout, units, "levels");
  return {
    unitColumns: GROUP_COLUMNS,
    storage,
    code: wgsl`
      ${code}

      fn bytes_of(word: u32) -> vec4<f32> {
        ${bytesOf(layout)}
      }
    `,
    load(name, index) {
      const isSided = scaleFacts(layout).covers === "signs";
      const quads = Array.from({ length: 8 }, (_, q) => {
        const half = q < 4 ? 0 : 1;
        const own = `bytes_of(${name}_codes.${half ? "high" : "low"}.${"xyzw"[q % 4]})`;
        const bytes = isSided ? `${name}_bytes${q}` : own;
        const value = valueOf(layout, half, { bytes, scales: `${name}_scales` });
        return `${isSided ? `let ${bytes} = ${own};\n` : ""}let ${name}${q} = ${value};`;
      });
      return wgsl`
        let ${name}_codes = weight_codes(${index});
        let ${name}_scales = weight_scales(${index});
        ${quads}
      `;
    },
  };
}
