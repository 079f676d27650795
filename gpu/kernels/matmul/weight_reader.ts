// WGSL that reads packed weights, generated from the layout: the one place where shaders know how codes and
// scales lie. Integer kernels take a group's codes as bytes (weight_codes.ts) and its scales (weight_scales.ts);
// float kernels take quads, four neighbouring columns as a vec4<f32>, exactly the numbers of the file.

import { type CodeLayout, GROUP_COLUMNS, scaleFacts } from "../../layouts/code_layout.ts";
import { CODE_KINDS } from "../../layouts/code_planes.ts";
import { codeLayout, gpuLayout } from "../../weight_layout.ts";
import { float, wgsl } from "../../wgsl.ts";
import { FLOAT_QUADS, type QuadReader, type WeightReader } from "../float_quads.ts";
import { codeFunctions, codeStorage, isSigned } from "./weight_codes.ts";
import { levelStep, scaleFunctions } from "./weight_scales.ts";

export type { QuadReader, WeightReader };

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
  { groups, of = "codes" }: {
    readonly groups: string;
    readonly of?: "codes" | "levels" | undefined;
  },
): WeightReader {
  return {
    storage: {
      ...codeStorage(layout.codes),
      w_scales: "array<u32>",
      ...layout.table ? { w_table: "array<u32>" } : {},
    },
    code: wgsl`
      ${codeFunctions(layout.codes)}

      ${scaleFunctions(layout, { groups, of })}
    `,
  };
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
  const { storage, code } = codeReader(layout, { groups: units, of: "levels" });
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
