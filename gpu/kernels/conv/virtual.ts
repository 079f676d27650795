// Convolution over virtual tensors (spec MD-5, MD-6): source, weights and target lie wherever their tensors say, and the
// text below does not change with it. One invocation makes four neighbouring filters at one place: for each tap and each
// slice of channels it reads one vec4 of the source and a 4 × 4 block of the weights. All sizes are constants of the text,
// so a kernel serves one node; sizes that vary, and groups that cut a slice, are left to windows.ts.

import type { Shader } from "../../kernel.ts";
import {
  bindingsOf,
  read,
  readOrZero,
  type VirtualTensor,
  virtualTensor,
  write,
} from "../../virtual_tensor.ts";
import { readWeights, type VirtualWeights } from "../../virtual_weights.ts";
import { GROUP_MAIN, wgsl } from "../../wgsl.ts";
import { coordinatesOf, mapCount } from "../virtual_map.ts";
import { epilogueFunction } from "../windows.ts";

/** Invocations of a workgroup. */
const CONV_BLOCK = 64;

/** Along depth, height and width. */
type Three = readonly [number, number, number];

/** A convolution whose sizes and places are known. */
export interface VirtualConv {
  readonly source: VirtualTensor;
  /** Index `i4`; the taps of all three dims are its height and width. */
  readonly weights: VirtualWeights;
  readonly target: VirtualTensor;
  readonly hasBias: boolean;
  /** Name of an epilogue. */
  readonly activation: string;
  readonly kernel: Three;
  readonly stride: Three;
  readonly dilation: Three;
  /** Pads before. */
  readonly begin: Three;
  /** More than one: channels and filters of each are multiples of 4. */
  readonly groups: number;
}

/** Workgroups of the kernel. */
export function virtualConvGroups({ target }: VirtualConv): number {
  return Math.ceil(mapCount(target) / CONV_BLOCK);
}

/** The kernel; its variables are those of the tensors, and `bias`. */
export function virtualConvShader(conv: VirtualConv): Shader {
  const { source, weights, target, hasBias, activation, kernel, stride, dilation, begin } = conv;
  const bias = virtualTensor("bias", { shape: { c: target.shape.c }, storage: "planes" });
  const place = (axis: number, out: string, tap: string) =>
    `i32(${out}) * ${stride[axis]} + ${tap} * ${dilation[axis]} - ${begin[axis]}`;
  const at = { b: "b", x: "in_x", y: "in_y", s: "input", d: "in_d" };
  const products = ["x", "y", "z", "w"].map((lane, t) =>
    `v.${lane} * ${readWeights(weights, t, { outputs: "s", tap: "tap", inputs: "c" })}`
  );
  return {
    name: "conv_virtual",
    ...bindingsOf([
      [source, "read"],
      ...weights.objects.map((object) => [object, "read"] as const),
      ...hasBias ? [[bias, "read"] as const] : [],
      [target, "write"],
    ]),
    uniforms: {},
    code: wgsl`
      ${epilogueFunction(activation)}

      @compute @workgroup_size(${CONV_BLOCK})
      ${GROUP_MAIN}
        var i = flat_workgroup(group, groups) * ${CONV_BLOCK}u + lane;
        if (i >= ${mapCount(target)}u) { return; }
        ${coordinatesOf(target)}
        var sum = ${hasBias ? read(bias, { s: "s" }) : "vec4<f32>()"};
        var tap = 0u;
        for (var kd = 0; kd < ${kernel[0]}; kd++) {
          let in_d = ${place(0, "d", "kd")};
          for (var kh = 0; kh < ${kernel[1]}; kh++) {
            let in_y = ${place(1, "y", "kh")};
            for (var kw = 0; kw < ${kernel[2]}; kw++) {
              let in_x = ${place(2, "x", "kw")};
              for (var c = 0u; c < ${weights.inputSlices}u; c++) {
                let input = ${firstSlice(conv)}c;
                let v = ${readOrZero(source, at)};
                sum += ${products.join(" + ")};
              }
              tap++;
            }
          }
        }
        sum = vec4<f32>(epilogue(sum.x), epilogue(sum.y), epilogue(sum.z), epilogue(sum.w));
        ${clearPadding(target)}
        ${write(target, { at: { b: "b", x: "x", y: "y", s: "s", d: "d" }, value: "sum" })}
      }
    `,
  };
}

/** Where the channels of the group of `s` begin, as the beginning of a sum. */
function firstSlice({ groups, source, target }: VirtualConv): string {
  if (groups === 1) return "";
  return `s / ${target.slices / groups}u * ${source.slices / groups}u + `;
}

/** An activation of zero may be something else; lanes without a channel hold zeros. */
function clearPadding({ shape: { c }, slices }: VirtualTensor): readonly string[] {
  const rest = c % 4;
  if (rest === 0) return [];
  const mask = [0, 1, 2, 3].map((lane) => String(lane < rest)).join(", ");
  return [`if (s == ${slices - 1}u) { sum = select(vec4<f32>(), sum, vec4<bool>(${mask})); }`];
}
