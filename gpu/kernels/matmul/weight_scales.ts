// WGSL that reads scales (layouts/code_layout.ts), always from 32-bit words, so that no kernel needs the f16
// extension to read weights. What kernels get depends on what a scale covers:
// - a group: (s, m) with x = s c + m, c being a stored code;
// - halves: the scales of columns 0..15 and 16..31, (s0, s1) with x = s (c - offset), or (s0, m0, s1, m1);
// - signs: the scales of positive and of negative codes.

import { type CodeLayout, scaleFacts, type ScaleKind } from "../../layouts/code_layout.ts";
import { float, wgsl } from "../../wgsl.ts";

/** WGSL type of the scales of a group. */
export function scaleType(layout: CodeLayout): "vec2<f32>" | "vec4<f32>" {
  const { covers, minima } = scaleFacts(layout);
  return covers === "halves" && minima ? "vec4<f32>" : "vec2<f32>";
}

/**
 * Declares `weight_scales(index)`, index being row · K/32 + group, and where two groups' scales fit a vector
 * `weight_scale_pair(index) -> vec4<f32>` for an even index.
 *
 * @param groups Groups of a row as an expression.
 * @param of Of E0M4, whether c is a code or the level that it stands for.
 */
export function scaleFunctions(
  layout: CodeLayout,
  { groups, of }: { readonly groups: string; readonly of: "codes" | "levels" },
): string {
  const type = scaleType(layout);
  return wgsl`
    ${layout.scales === "e4m3" ? `${E4M3}\n\n` : ""}fn weight_scales(index: u32) -> ${type} {
      ${scales(layout, groups, of)}
    }
    ${
    type === "vec4<f32>" ? "" : wgsl`

      fn weight_scale_pair(index: u32) -> vec4<f32> {
        ${scalePair(layout)}
      }
    `
  }
  `;
}

/** Where the scale of a group stands. */
function place({ span }: CodeLayout, groups: string): string {
  if (span === "row") return `index / ${groups}`;
  return span === 32 ? "index" : `index >> ${Math.log2(span / 32)}u`;
}

function scales(layout: CodeLayout, groups: string, of: "codes" | "levels"): string {
  const at = place(layout, groups);
  const { scales, offset } = layout;
  switch (scales) {
    case "d":
      return wgsl`
        let place = ${at};
        let pair = w_scales[place >> 1u] >> ((place & 1u) << 4u);
        let d = unpack2x16float(pair).x;
        return vec2<f32>(d, ${float(-offset)} * d);
      `;
    case "f":
      return wgsl`
        let d = bitcast<f32>(w_scales[${at}]);
        return vec2<f32>(d, ${float(-offset)} * d);
      `;
    case "dm":
      if (offset === 0) return `return unpack2x16float(w_scales[${at}]);`;
      return wgsl`
        let s = unpack2x16float(w_scales[${at}]);
        return vec2<f32>(s.x, s.y + ${float(-offset)} * s.x);
      `;
    case "fm":
    case "sides":
      return wgsl`
        let place = 2u * (${at});
        return bitcast<vec2<f32>>(vec2<u32>(w_scales[place], w_scales[place + 1u]));
      `;
    case "dz":
      return wgsl`
        let word = w_scales[${at}];
        let d = unpack2x16float(word).x;
        return vec2<f32>(d, -d * f32(bitcast<i32>(word) >> 16u));
      `;
    case "e1":
    case "e2":
      return wgsl`
        let s = unpack2x16float(w_scales[${at}]);
        ${
        of === "levels"
          ? "return vec2<f32>(s.x, -s.y * s.x);"
          : `return s.x * vec2<f32>(${float(levelStep(scales))}, ${
            float(16 * levelStep(scales))
          } - s.y);`
      }
      `;
    case "e8":
      // The two smallest are subnormal.
      return wgsl`
        let e = (w_scales[index >> 2u] >> ((index & 3u) << 3u)) & 0xffu;
        let d = bitcast<f32>(select((e - 1u) << 23u, 0x00200000u << e, e < 2u));
        return vec2<f32>(d, ${float(-offset)} * d);
      `;
    case "k8":
      return wgsl`
        let block = 3u * (index >> 3u);
        let d = unpack2x16float(w_scales[block]).x;
        let word = w_scales[block + 1u + ((index & 7u) >> 2u)];
        let s = d * f32(bitcast<i32>(word << (24u - ((index & 3u) << 3u))) >> 24u);
        return vec2<f32>(s, ${float(-offset)} * s);
      `;
    case "n8":
      return wgsl`
        let block = 2u * (index >> 3u);
        let d = ${float(layout.factor)} * unpack2x16float(w_scales[block]).x;
        let nibble = (w_scales[block + 1u] >> ((index & 7u) << 2u)) & 0xfu;
        let s = d * (f32(nibble) + 0.5);
        return vec2<f32>(s, ${float(-offset)} * s);
      `;
    case "n16":
      return wgsl`
        let block = 3u * (index >> 3u);
        let d = ${float(layout.factor)} * unpack2x16float(w_scales[block]).x;
        let pair = w_scales[block + 1u + ((index & 7u) >> 2u)] >> ((index & 3u) << 3u);
        let nibbles = (vec2<u32>(pair) >> vec2<u32>(0u, 4u)) & vec2<u32>(0xfu);
        return d * (vec2<f32>(nibbles) + vec2<f32>(0.5));
      `;
    case "k":
    case "k16":
    case "kn16":
      return wgsl`
        ${BLOCK}
        let pair = pairs >> ((index & 1u) << 4u);
        ${PAIR_SCALES[scales]}
      `;
    case "e4m3":
      return wgsl`
        let pair = w_scales[index >> 1u] >> ((index & 1u) << 4u);
        return e4m3(vec2<u32>(pair, pair >> 8u));
      `;
    case "b16":
      return wgsl`
        let bytes = vec4<f32>((vec4<u32>(w_scales[index]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(0xffu));
        return (bytes.yxwz - vec4<f32>(0.0, 100.0, 0.0, 100.0)) / vec4<f32>(1000.0, 100.0, 1000.0, 100.0);
      `;
  }
}

/** Scales of a group of the K formats out of a 16-bit pair and the block's float16 pair. */
const BLOCK = wgsl`
  let block = 5u * (index >> 3u);
  let d = unpack2x16float(w_scales[block]);
  let pairs = w_scales[block + 1u + ((index & 7u) >> 1u)];
`;
const PAIR_SCALES = {
  k: "return vec2<f32>(d.x * f32(pair & 0xffu), -d.y * f32((pair >> 8u) & 0xffu));",
  k16: wgsl`
    let raised = vec2<u32>(pair << 24u, pair << 16u);
    return d.x * vec2<f32>(vec2<i32>(raised) >> vec2<u32>(24u));
  `,
  kn16: wgsl`
    let nibbles = (vec4<u32>(pair) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(0xfu);
    return vec4<f32>(d.x, -d.y, d.x, -d.y) * vec4<f32>(nibbles);
  `,
} as const;

/** Half of an unsigned float of 4 and 3 bits; 0 and 127 are 0, the highest bit counts nothing. */
const E4M3 = wgsl`
  fn e4m3(bytes: vec2<u32>) -> vec2<f32> {
    let code = bytes & vec2<u32>(0x7fu);
    // Subnormal ones have the exponent 1 and no leading 1.
    let isSmall = code < vec2<u32>(8u);
    let raised = (select(code, code + vec2<u32>(8u), isSmall) << vec2<u32>(20u)) + vec2<u32>(0x3b800000u);
    let value = bitcast<vec2<f32>>(raised) - select(vec2<f32>(), vec2<f32>(0.0078125), isSmall);
    return select(value, vec2<f32>(), code == vec2<u32>(127u));
  }

`;

function scalePair(layout: CodeLayout): string {
  const { scales, span, offset } = layout;
  if (scales === "d" && span === 32) {
    return wgsl`
      let d = unpack2x16float(w_scales[index >> 1u]);
      let m = ${float(-offset)} * d;
      return vec4<f32>(d.x, m.x, d.y, m.y);
    `;
  }
  if (scales === "k") {
    return wgsl`
      ${BLOCK}
      let bytes = vec4<f32>((vec4<u32>(pairs) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(0xffu));
      return vec4<f32>(d.x, -d.y, d.x, -d.y) * bytes;
    `;
  }
  if (scales === "k16") {
    return wgsl`
      ${BLOCK}
      let raised = vec4<u32>(pairs) << vec4<u32>(24u, 16u, 8u, 0u);
      return d.x * vec4<f32>(vec4<i32>(raised) >> vec4<u32>(24u));
    `;
  }
  // An even number of groups under one scale.
  if (span !== 32) return "return weight_scales(index).xyxy;";
  return "return vec4<f32>(weight_scales(index), weight_scales(index + 1u));";
}

/** Distance of two levels of E0M4, 2ⁿ⁻⁴. */
export function levelStep(scales: Extract<ScaleKind, "e1" | "e2">): number {
  return scales === "e1" ? 0.125 : 0.25;
}
