// What slides over planes: convolutions and pools, over three spatial dims (missing outer ones have size 1). One
// invocation makes one element of the result and looks at its window itself: no memory beside the result, and
// any stride, dilation, pad and group. Left out: tiles that share what neighbouring windows read.

import type { UnaryName } from "../../functions/unary.ts";
import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";
import { unaryFunction } from "./element_functions.ts";

/** Elements of a workgroup. */
export const WINDOW_BLOCK = 64;

const AXES = ["d", "h", "w"] as const;

/** Of what slides over planes: elements of the result, sizes, and the window along each axis. */
export const WINDOW_UNIFORMS: Readonly<Record<string, "u32" | "i32">> = {
  count: "u32",
  ...{ depth: "i32", height: "i32", width: "i32" },
  ...{ out_depth: "u32", out_height: "u32", out_width: "u32" },
  ...Object.fromEntries(
    AXES.flatMap((axis) =>
      ["kernel", "stride", "dilation", "begin"].map((name) => [`${name}_${axis}`, "i32" as const])
    ),
  ),
};

/** The loop over a window; `inside` sees the tap's place in its plane as `place`, `tap`: its number. */
function windowLoop(inside: string, beside = ""): string {
  return wgsl`
    var tap = 0u;
    for (var kd = 0; kd < params.kernel_d; kd++) {
      let d = out_d * params.stride_d + kd * params.dilation_d - params.begin_d;
      for (var kh = 0; kh < params.kernel_h; kh++) {
        let h = out_h * params.stride_h + kh * params.dilation_h - params.begin_h;
        for (var kw = 0; kw < params.kernel_w; kw++) {
          let w = out_w * params.stride_w + kw * params.dilation_w - params.begin_w;
          if (d >= 0 && d < params.depth && h >= 0 && h < params.height && w >= 0 && w < params.width) {
            let place = u32((d * params.height + h) * params.width + w);
            ${inside}
          }
          ${beside}
          tap++;
        }
      }
    }
  `;
}

function windowShader(
  name: string,
  storage: readonly string[],
  uniforms: Readonly<Record<string, "u32" | "i32">>,
  { functions = "", body }: { readonly functions?: string; readonly body: string },
): Shader {
  return {
    name,
    storage: Object.fromEntries([...storage, "y"].map((variable) => [variable, "array<f32>"])),
    writes: ["y"],
    uniforms: { ...WINDOW_UNIFORMS, ...uniforms },
    code: wgsl`
      ${functions}

      @compute @workgroup_size(${WINDOW_BLOCK})
      ${GROUP_MAIN}
        let i = flat_workgroup(group, groups) * ${WINDOW_BLOCK}u + lane;
        if (i >= params.count) { return; }
        let out_w = i32(i % params.out_width);
        let rest_w = i / params.out_width;
        let out_h = i32(rest_w % params.out_height);
        let rest_h = rest_w / params.out_height;
        let out_d = i32(rest_h % params.out_depth);
        let plane = rest_h / params.out_depth;
        let area = u32(params.depth * params.height * params.width);
        ${body}
      }
    `,
  };
}

/** `epilogue(x)` of a name, and what it calls. */
export function epilogueFunction(activation: string): string {
  if (activation === "none") return "fn epilogue(x: f32) -> f32 { return x; }";
  return [
    unaryFunction(activation as UnaryName, "float")!,
    "fn epilogue(x: f32) -> f32 { return unary(x, 1.0, 0.0); }",
  ].join("\n");
}

/** Uniforms beside those of the window: `filters`, `group_filters` and `group_channels` of a group. */
export function convShader(
  { hasBias, activation }: { readonly hasBias: boolean; readonly activation: string },
): Shader {
  return windowShader(
    "conv",
    ["x", "weight", ...hasBias ? ["bias"] : []],
    { filters: "u32", group_filters: "u32", group_channels: "u32", groups: "u32" },
    {
      functions: epilogueFunction(activation),
      body: wgsl`
        let f = plane % params.filters;
        let image = plane / params.filters;
        let taps = u32(params.kernel_d * params.kernel_h * params.kernel_w);
        let first = (image * params.groups + f / params.group_filters) * params.group_channels;
        var sum = ${hasBias ? "bias[f]" : "0.0"};
        for (var c = 0u; c < params.group_channels; c++) {
          let at = (first + c) * area;
          let weight_at = (f * params.group_channels + c) * taps;
          ${windowLoop("sum += x[at + place] * weight[weight_at + tap];")}
        }
        y[i] = epilogue(sum);
      `,
    },
  );
}

/** Uniforms as of `convShader`; the window's are those of the convolution that it turns round. */
export function convTransposeShader(
  { hasBias, activation }: { readonly hasBias: boolean; readonly activation: string },
): Shader {
  return windowShader(
    "conv_transpose",
    ["x", "weight", ...hasBias ? ["bias"] : []],
    { filters: "u32", group_filters: "u32", group_channels: "u32", groups: "u32" },
    {
      functions: epilogueFunction(activation),
      body: wgsl`
        let f = plane % params.filters;
        let image = plane / params.filters;
        let taps = u32(params.kernel_d * params.kernel_h * params.kernel_w);
        let own = f / params.group_filters * params.group_channels;
        let first = image * params.groups * params.group_channels + own;
        let step = params.group_filters * taps;
        var sum = ${hasBias ? "bias[f]" : "0.0"};
        ${
        transposedLoop(wgsl`
          let x_at = first * area + place;
          let weight_at = own * step + f % params.group_filters * taps + tap;
          for (var c = 0u; c < params.group_channels; c++) {
            sum += x[x_at + c * area] * weight[weight_at + c * step];
          }
        `)
      }
        y[i] = epilogue(sum);
      `,
    },
  );
}

/** The places whose windows reach an element of the result; `inside` sees one as `place`, and the number of its `tap`. */
function transposedLoop(inside: string): string {
  return wgsl`
    var tap = 0u;
    for (var kd = 0; kd < params.kernel_d; kd++) {
      let d = out_d + params.begin_d - kd * params.dilation_d;
      for (var kh = 0; kh < params.kernel_h; kh++) {
        let h = out_h + params.begin_h - kh * params.dilation_h;
        for (var kw = 0; kw < params.kernel_w; kw++) {
          let w = out_w + params.begin_w - kw * params.dilation_w;
          let is_reached = d >= 0 && h >= 0 && w >= 0 && d % params.stride_d == 0 &&
            h % params.stride_h == 0 && w % params.stride_w == 0 && d < params.depth * params.stride_d &&
            h < params.height * params.stride_h && w < params.width * params.stride_w;
          if (is_reached) {
            let row = d / params.stride_d * params.height + h / params.stride_h;
            let place = u32(row * params.width + w / params.stride_w);
            ${inside}
          }
          tap++;
        }
      }
    }
  `;
}

/** Largest elements; a window on pads alone has none, and is -∞. */
export const maxPoolShader: Shader = windowShader("max_pool", ["x"], { least: "u32" }, {
  body: wgsl`
    let at = plane * area;
    var most = bitcast<f32>(params.least);
    ${
    windowLoop(wgsl`
      let value = x[at + place];
      if (value > most || (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u) { most = value; }
    `)
  }
    y[i] = most;
  `,
});

/** Averages, of the elements or (`count_pads` 1) of everything before the ends `limit_d`… of the padded plane. */
export const averagePoolShader: Shader = windowShader(
  "average_pool",
  ["x"],
  { count_pads: "u32", limit_d: "i32", limit_h: "i32", limit_w: "i32" },
  {
    body: wgsl`
      let at = plane * area;
      var sum = 0.0;
      var places = 0u;
      var padded = 0u;
      ${
      windowLoop(
        "sum += x[at + place]; places++;",
        "padded += u32(d < params.limit_d && h < params.limit_h && w < params.limit_w);",
      )
    }
      y[i] = sum / f32(select(places, padded, params.count_pads != 0u));
    `,
  },
);
