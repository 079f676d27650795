// Groups of channels normalised over all their elements, which lie side by side. A group may be a few elements or a
// million, so a workgroup takes a part of one: the first shader finds mean and squares of each part about its own
// mean, the second joins those of the group (Chan et al., "Updating formulae and a pairwise algorithm for computing
// sample variances", 1979), which loses nothing where a plane is far from 0, and writes the part.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";
import { list } from "./matmul/rows.ts";
import { workgroupReduction } from "./reduce.ts";
import { epilogueFunction } from "./windows.ts";

const SIZE = 128;

/** Elements of a part. */
export const GROUP_PART = 4096;

/** Elements that an invocation fetches at once: several loads take as long as one. */
const AT_ONCE = 8;

/** Statements for each element of an invocation, its value and its place in the part. */
function eachElement(text: (value: string, place: string) => string): string {
  return wgsl`
    for (var first = lane; first < length; first += ${AT_ONCE * SIZE}u) {
      ${
    list(AT_ONCE, (n) =>
      wgsl`
        let i${n} = first + ${n * SIZE}u;
        let x${n} = x[at + min(i${n}, length - 1u)];
      `)
  }
      ${list(AT_ONCE, (n) => `if (i${n} < length) { ${text(`x${n}`, `i${n}`)} }`)}
    }
  `;
}

const SUM = workgroupReduction("sum", { size: SIZE, combine: "a + b" });

// A whole workgroup leaves or stays, so barriers stay uniform.
const PART_KERNEL = wgsl`
  @compute @workgroup_size(${SIZE})
  ${GROUP_MAIN}
    let own = flat_workgroup(group, groups);
    if (own >= params.count) { return; }
    let of_group = own / params.parts;
    let part = own % params.parts;
    let at = of_group * params.size + part * ${GROUP_PART}u;
    let length = min(${GROUP_PART}u, params.size - part * ${GROUP_PART}u);
`;

/** Mean of each part, and squares about it. Uniforms: `count` parts in all, `parts` and `size` of a group. */
export const groupMomentsShader: Shader = {
  name: "group_moments",
  storage: { x: "array<f32>", moments: "array<vec2<f32>>" },
  writes: ["moments"],
  uniforms: { count: "u32", parts: "u32", size: "u32" },
  code: wgsl`
    ${SUM}
    ${PART_KERNEL}
      var total = 0.0;
      ${eachElement((value) => `total += ${value};`)}
      let mean = sum(lane, total) / f32(length);
      var squares = 0.0;
      ${eachElement((value) => `squares += (${value} - mean) * (${value} - mean);`)}
      squares = sum(lane, squares);
      if (lane == 0u) { moments[own] = vec2<f32>(mean, squares); }
    }
  `,
};

/** Uniforms beside those of `groupMomentsShader`: `places` of a channel, `channels`, `epsilon`. */
export function groupNormShader(
  { hasWeight, hasBias, activation }: {
    readonly hasWeight: boolean;
    readonly hasBias: boolean;
    readonly activation: string;
  },
): Shader {
  return {
    name: "group_norm",
    storage: {
      x: "array<f32>",
      moments: "array<vec2<f32>>",
      ...hasWeight && { w: "array<f32>" },
      ...hasBias && { b: "array<f32>" },
      y: "array<f32>",
    },
    writes: ["y"],
    uniforms: {
      ...{ count: "u32", parts: "u32", size: "u32" },
      ...{ places: "u32", channels: "u32", epsilon: "f32" },
    },
    code: wgsl`
      ${SUM}
      ${epilogueFunction(activation)}
      ${PART_KERNEL}
        let first = of_group * params.parts;
        let size = f32(params.size);
        var total = 0.0;
        for (var i = lane; i < params.parts; i += ${SIZE}u) {
          total += moments[first + i].x * f32(min(${GROUP_PART}u, params.size - i * ${GROUP_PART}u));
        }
        let mean = sum(lane, total) / size;
        var squares = 0.0;
        for (var i = lane; i < params.parts; i += ${SIZE}u) {
          let distance = moments[first + i].x - mean;
          let elements = f32(min(${GROUP_PART}u, params.size - i * ${GROUP_PART}u));
          squares += moments[first + i].y + elements * distance * distance;
        }
        let factor = 1.0 / sqrt(sum(lane, squares) / size + params.epsilon);
        ${
      eachElement((value, place) =>
        wgsl`
          let c = (at + ${place}) / params.places % params.channels;
          let normal = (${value} - mean) * factor;
          y[at + ${place}] = epilogue(normal${hasWeight ? " * w[c]" : ""}${
          hasBias ? " + b[c]" : ""
        });
        `
      )
    }
      }
    `,
  };
}
