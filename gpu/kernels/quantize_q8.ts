// Float rows to 8-bit rows (q8_rows.ts): alone, or as the end of a norm or a gated activation, so that their
// results are never stored as floats. An invocation has a quad of columns and eight of them share a group, by
// way of workgroup memory: the group's largest magnitude, then the sum of its codes.

import { Q8_GROUP, q8RowBytes } from "../../quant/q8_activation.ts";
import type { Shader } from "../kernel.ts";
import { float, wgsl } from "../wgsl.ts";
import { list } from "./matmul_rows.ts";

/** Quads of a workgroup of the kernels that need no sum over a row. */
const QUADS = 64;

/** Quads that one workgroup quantises. */
export const QUANTIZE_QUADS: number = QUADS;

/** Bindings x, y; uniform: quads of all rows. */
export function quantizeQ8(columns: number): Shader {
  return flatShader("quantize_q8", columns, {
    storage: { x: "array<vec4<f32>>" },
    value: "x[quad]",
    functions: "",
  });
}

/**
 * activation(gate) · up; bindings gate, up, y; uniform: quads of all rows.
 *
 * @param activation WGSL of a function `activation(x: vec4<f32>) -> vec4<f32>`.
 */
export function gluQ8(columns: number, activation: string): Shader {
  return flatShader("glu_q8", columns, {
    storage: { gate: "array<vec4<f32>>", up: "array<vec4<f32>>" },
    value: "activation(gate[quad]) * up[quad]",
    functions: activation,
  });
}

/** The same for rows whose first half is the gate; bindings x, y; uniform: quads of all results. */
export function gluHalvesQ8(columns: number, activation: string): Shader {
  const quads = columns / 4;
  const gate = `quad + quad / ${quads}u * ${quads}u`;
  return flatShader("glu_halves_q8", columns, {
    storage: { x: "array<vec4<f32>>" },
    value: `activation(x[${gate}]) * x[${gate} + ${quads}u]`,
    functions: activation,
  });
}

function flatShader(
  name: string,
  columns: number,
  { storage, value, functions }: {
    readonly storage: Readonly<Record<string, string>>;
    readonly value: string;
    readonly functions: string;
  },
): Shader {
  return {
    name,
    storage: { ...storage, y: "array<u32>" },
    writes: ["y"],
    uniforms: { quads: "u32" },
    code: wgsl`
      ${functions}

      ${groupMemory(QUADS, 1)}

      ${storeQuad(columns)}

      @compute @workgroup_size(${QUADS})
      fn main(
        @builtin(workgroup_id) id: vec3<u32>,
        @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) thread: u32,
      ) {
        let own = flat_workgroup(id, count) * ${QUADS}u + thread;
        let quad = min(own, params.quads - 1u);
        let value0 = ${value};
        ${quantizeQuads(QUADS, 1)}
        if (own < params.quads) {
          store(own / ${columns / 4}u, own % ${columns / 4}u, thread, scale0, codes0);
        }
      }
    `,
  };
}

/** What a fused norm is made for. */
export interface RmsNormQ8Params {
  readonly columns: number;
  /** Whether there is a weight. */
  readonly weight: boolean;
  readonly epsilon: number;
  /** Added to the weight. */
  readonly base: number;
  /** Invocations of a workgroup, which has a row; a multiple of 16, at most 256. */
  readonly workgroup: number;
}

/** x / sqrt(mean(x²) + epsilon) · (base + weight), a row a workgroup; bindings x, y, weight. */
export function rmsNormQ8(
  { columns, weight, epsilon, base, workgroup }: RmsNormQ8Params,
): Shader {
  const quads = columns / 4;
  const passes = Math.ceil(quads / workgroup);
  const gain = weight ? ` * (${float(base)} + weight[quad])` : "";
  const sixteenth = workgroup / 16;
  return {
    name: "rms_norm_q8",
    storage: {
      x: "array<vec4<f32>>",
      y: "array<u32>",
      ...weight ? { weight: "array<vec4<f32>>" } : {},
    },
    writes: ["y"],
    uniforms: { rows: "u32" },
    code: wgsl`
      ${groupMemory(workgroup, passes)}

      var<workgroup> squares: array<f32, ${workgroup}>;
      var<workgroup> part: array<f32, 16>;

      ${storeQuad(columns)}

      @compute @workgroup_size(${workgroup})
      fn main(
        @builtin(workgroup_id) id: vec3<u32>,
        @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) thread: u32,
      ) {
        let own = flat_workgroup(id, count);
        let row = min(own, params.rows - 1u);
        var square = 0.0;
        ${
      list(passes, (p) =>
        wgsl`
        let quad${p} = thread + ${p * workgroup}u;
        let x${p} = x[row * ${quads}u + min(quad${p}, ${quads - 1}u)];
        square += select(0.0, dot(x${p}, x${p}), quad${p} < ${quads}u);
      `)
    }
        squares[thread] = square;
        workgroupBarrier();
        if (thread < 16u) {
          var sum = 0.0;
          for (var i = 0u; i < ${sixteenth}u; i++) { sum += squares[thread + 16u * i]; }
          part[thread] = sum;
        }
        workgroupBarrier();
        var total = 0.0;
        for (var i = 0u; i < 16u; i++) { total += part[i]; }
        let factor = 1.0 / sqrt(total / ${float(columns)} + ${float(epsilon)});
        ${
      list(passes, (p) =>
        `let value${p} = x${p} * factor${gain.replace("quad", `min(quad${p}, ${quads - 1}u)`)};`)
    }
        ${quantizeQuads(workgroup, passes)}
        if (own < params.rows) {
          ${
      list(passes, (p) =>
        wgsl`
        if (quad${p} < ${quads}u) {
          store(row, quad${p}, thread + ${p * workgroup}u, scale${p}, codes${p});
        }
      `)
    }
        }
      }
    `,
  };
}

function groupMemory(workgroup: number, passes: number): string {
  return wgsl`
    var<workgroup> peaks: array<f32, ${workgroup * passes}>;
    var<workgroup> totals: array<i32, ${workgroup * passes}>;
  `;
}

/** Statements from `value{p}` to `scale{p}` and `codes{p}: vec4<i32>`; codes are summed up in `totals`. */
function quantizeQuads(workgroup: number, passes: number): string {
  const place = (p: number) => `thread + ${p * workgroup}u`;
  return wgsl`
    ${
    list(passes, (p) =>
      wgsl`
        let size${p} = abs(value${p});
        peaks[${place(p)}] = max(max(size${p}.x, size${p}.y), max(size${p}.z, size${p}.w));
      `)
  }
    workgroupBarrier();
    let group = thread & ~7u;
    ${
    list(passes, (p) =>
      wgsl`
        let scale${p} = peak_of(group + ${p * workgroup}u) / 127.0;
        let ratio${p} = select(vec4<f32>(), value${p} / scale${p}, scale${p} > 0.0);
        let codes${p} = vec4<i32>(clamp(round(ratio${p}), vec4<f32>(-127.0), vec4<f32>(127.0)));
        totals[${place(p)}] = codes${p}.x + codes${p}.y + codes${p}.z + codes${p}.w;
      `)
  }
    workgroupBarrier();
  `;
}

/**
 * `peak_of(start)`: the largest of a group's peaks, and `store(row, quad, place, scale, codes)`, `place` being the
 * quad's in workgroup memory; the first quad of a group stores its scale and sums.
 */
function storeQuad(columns: number): string {
  const stride = q8RowBytes(columns) / 4;
  const groups = columns / Q8_GROUP;
  return wgsl`
    fn peak_of(start: u32) -> f32 {
      ${list(4, (i) => `let p${i} = max(peaks[start + ${2 * i}u], peaks[start + ${2 * i + 1}u]);`)}
      return max(max(p0, p1), max(p2, p3));
    }

    fn store(row: u32, quad: u32, place: u32, scale: f32, codes: vec4<i32>) {
      let bytes = vec4<u32>(codes) & vec4<u32>(0xffu);
      let start = row * ${stride}u;
      y[start + quad] = bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
      if ((quad & 7u) != 0u) { return; }
      let half = totals[place] + totals[place + 1u] + totals[place + 2u] + totals[place + 3u];
      let rest = totals[place + 4u] + totals[place + 5u] + totals[place + 6u] + totals[place + 7u];
      let pair = start + ${columns / 4}u + (quad >> 2u);
      y[pair] = bitcast<u32>(scale);
      y[pair + 1u] = bitcast<u32>(scale * f32(half + rest));
      y[start + ${columns / 4 + 2 * groups}u + (quad >> 3u)] = bitcast<u32>(scale * f32(half));
    }
  `;
}
