// The end of every kernel that makes 8-bit rows (q8_rows.ts): an invocation has a quad of columns, and eight
// neighbours share a group of 32, whose largest magnitude and sum of codes they need: by shuffles in a subgroup,
// else by way of workgroup memory.

import { Q8_GROUP, q8RowBytes } from "../../quant/q8_activation.ts";
import { wgsl } from "../wgsl.ts";
import { list } from "./matmul/rows.ts";

/** What a quantiser is made for. */
export interface GroupQuantizerParams {
  /** Columns of a row. */
  readonly columns: number;
  /** Invocations of a workgroup; a multiple of 8. */
  readonly workgroup: number;
  /** Quads of an invocation, one `workgroup` after the other. */
  readonly passes: number;
  /** Exchange by shuffles: subgroups have at least 8 lanes. */
  readonly subgroups: boolean;
}

/** Parts of a shader that makes 8-bit rows. */
export interface GroupQuantizer {
  readonly enables: readonly "subgroups"[];
  /** Module scope. */
  readonly declarations: string;
  /** Module scope: `put(row, quad, scale, codes, half, rest)` stores a quad in a binding `y: array<u32>`. */
  readonly put: string;
  /**
   * Statements in uniform control flow, for all invocations. From `value{p}: vec4<f32>` they make `scale{p}`,
   * `codes{p}: vec4<i32>`, and `half{p}` and `rest{p}`, sums of 16 codes each that the first quad of a group
   * needs. They use `thread`.
   */
  readonly quantize: string;
}

/** The quantiser of a shape. */
export function groupQuantizer(params: GroupQuantizerParams): GroupQuantizer {
  const { columns, subgroups } = params;
  return {
    enables: subgroups ? ["subgroups"] : [],
    declarations: subgroups ? "" : groupMemory(params),
    put: put(columns),
    quantize: subgroups ? byShuffles(params) : byMemory(params),
  };
}

/** `scale` of a group, of what is not finite NaN, from the bits of its largest magnitude, and `codes` of an invocation's own quad. */
function codesOf(p: number): string {
  return wgsl`
    let nan${p} = select(0u, 0x400000u, peak${p} >= 0x7f800000u);
    let scale${p} = bitcast<f32>(peak${p} | nan${p}) / 127.0;
    let ratio${p} = select(vec4<f32>(), value${p} / scale${p}, scale${p} > 0.0);
    let codes${p} = vec4<i32>(clamp(round(ratio${p}), vec4<f32>(-127.0), vec4<f32>(127.0)));
    let own${p} = codes${p}.x + codes${p}.y + codes${p}.z + codes${p}.w;
  `;
}

/** Bits of magnitudes are in the order of these, NaN above all. */
function largestOf(p: number): string {
  return wgsl`
    let size${p} = bitcast<vec4<u32>>(value${p}) & vec4<u32>(0x7fffffffu);
    let most${p} = max(max(size${p}.x, size${p}.y), max(size${p}.z, size${p}.w));
  `;
}

function byShuffles({ passes }: GroupQuantizerParams): string {
  return list(passes, (p) =>
    wgsl`
    ${largestOf(p)}
    var peak${p} = max(most${p}, subgroupShuffleXor(most${p}, 1u));
    peak${p} = max(peak${p}, subgroupShuffleXor(peak${p}, 2u));
    peak${p} = max(peak${p}, subgroupShuffleXor(peak${p}, 4u));
    ${codesOf(p)}
    var half${p} = own${p} + subgroupShuffleXor(own${p}, 1u);
    half${p} += subgroupShuffleXor(half${p}, 2u);
    let rest${p} = subgroupShuffleXor(half${p}, 4u);
  `).join("\n");
}

function groupMemory({ workgroup, passes }: GroupQuantizerParams): string {
  return wgsl`
    var<workgroup> peaks: array<u32, ${workgroup * passes}>;
    var<workgroup> totals: array<i32, ${workgroup * passes}>;

    fn peak_of(start: u32) -> u32 {
      ${list(4, (i) => `let p${i} = max(peaks[start + ${2 * i}u], peaks[start + ${2 * i + 1}u]);`)}
      return max(max(p0, p1), max(p2, p3));
    }

    fn total_of(start: u32) -> i32 {
      return totals[start] + totals[start + 1u] + totals[start + 2u] + totals[start + 3u];
    }
  `;
}

function byMemory({ workgroup, passes }: GroupQuantizerParams): string {
  const start = (p: number) => `octet + ${p * workgroup}u`;
  return wgsl`
    ${
    list(passes, (p) =>
      wgsl`
      ${largestOf(p)}
      peaks[thread + ${p * workgroup}u] = most${p};
    `)
  }
    workgroupBarrier();
    let octet = thread & ~7u;
    ${
    list(passes, (p) =>
      wgsl`
      let peak${p} = peak_of(${start(p)});
      ${codesOf(p)}
      totals[thread + ${p * workgroup}u] = own${p};
    `)
  }
    workgroupBarrier();
    ${
    list(passes, (p) =>
      wgsl`
      let half${p} = total_of(${start(p)});
      let rest${p} = total_of(${start(p)} + 4u);
    `)
  }
  `;
}

/** Four codes as the bytes of a word. */
export const WORD_OF_CODES: string = wgsl`
  fn word_of(codes: vec4<i32>) -> u32 {
    let bytes = vec4<u32>(codes) & vec4<u32>(0xffu);
    return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
  }
`;

/** The first quad of a group stores its scale and sums. */
function put(columns: number): string {
  const stride = q8RowBytes(columns) / 4;
  const groups = columns / Q8_GROUP;
  return wgsl`
    ${WORD_OF_CODES}

    fn put(row: u32, quad: u32, scale: f32, codes: vec4<i32>, half: i32, rest: i32) {
      let start = row * ${stride}u;
      y[start + quad] = word_of(codes);
      if ((quad & 7u) != 0u) { return; }
      let pair = start + ${columns / 4}u + (quad >> 2u);
      y[pair] = bitcast<u32>(scale);
      y[pair + 1u] = bitcast<u32>(scale * f32(half + rest));
      y[start + ${columns / 4 + 2 * groups}u + (quad >> 3u)] = bitcast<u32>(scale * f32(half));
    }
  `;
}
