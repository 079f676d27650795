// Faults in kernels: AssemblyScript, which is compiled for each, and WGSL. Snapshots of shader texts notice every
// change; these must be noticed by numbers.

import type { FaultGroup } from "./fault.ts";

const ops = ["tests/ops_test.ts"];
const gpu = ["tests/gpu_test.ts"];

/** From rows of memory to rows of memory. */
export const kernelFaults: readonly FaultGroup[] = [
  {
    file: "wasm/assembly/rows/norm.ts",
    tests: ops,
    name: "norm on wasm",
    faults: [[
      "epsilon is left out",
      "/ <f64>columns + <f64>epsilon));\n  const f =",
      "/ <f64>columns));\n  const f =",
    ]],
  },
  {
    file: "wasm/assembly/network/resize_rules.ts",
    tests: ["engine/ops/resize_taps_test.ts"],
    faults: [
      ["half_pixel_symmetric is half_pixel", "from / 2 * (1 - to / length) + (at", "(at"],
      [
        "ties go down where up is preferred",
        "return Math.floor(x + 0.5)",
        "return Math.ceil(x - 0.5)",
      ],
      [
        "align_corners leaves out the last element",
        "(from - 1) / (length - 1)",
        "(from - 1) / length",
      ],
    ],
  },
  {
    file: "wasm/assembly/rows/softmax.ts",
    tests: ops,
    name: "softmax on wasm",
    faults: [[
      "large numbers overflow",
      "if (v > highest) highest = v;",
      "if (v < highest) highest = v;",
    ]],
  },
  {
    file: "wasm/assembly/attention/rope.ts",
    tests: ops,
    name: "rope",
    faults: [
      [
        "the second half turns the other way",
        "f32x4.add(f32x4.mul(b, c), f32x4.mul(a, s)));\n  }\n  for (; i < half; i += 4) rotate(x + i, x + half",
        "f32x4.sub(f32x4.mul(b, c), f32x4.mul(a, s)));\n  }\n  for (; i < half; i += 4) rotate(x + i, x + half",
      ],
      [
        "a text of the trained length has the frequencies of longer ones",
        "> <i32>u32At(ip, ROPE_TABLE_BEYOND)",
        ">= <i32>u32At(ip, ROPE_TABLE_BEYOND)",
      ],
    ],
  },

  {
    file: "wasm/assembly/half.ts",
    tests: ops,
    name: "kv_append on wasm",
    faults: [[
      "ties of halves go up",
      "i32x4.splat(0xfff - (112 << 23))), odd)",
      "i32x4.splat(0x1000 - (112 << 23))), i32x4.splat(0))",
    ]],
  },
  {
    file: "wasm/assembly/rows/best_logits.ts",
    tests: ["engine/run/wasm/best_logits_test.ts"],
    faults: [[
      "of equal logits the last comes first",
      "return a > b || (a != a",
      "return a >= b || (a != a",
    ]],
  },
  {
    file: "wasm/assembly/matmul/mixture.ts",
    tests: ops,
    name: "route on wasm",
    faults: [[
      "a group is judged by its best expert alone",
      "bestTwo && size > 1 ? first + second",
      "bestTwo && size > 99 ? first + second",
    ]],
  },
  {
    file: "wasm/assembly/matmul/quantize.ts",
    tests: ops,
    name: "quantize on wasm",
    faults: [[
      "a negative extreme is overlooked",
      "return i32x4.max_u(a, f32x4.abs(b));",
      "return f32x4.pmax(a, b);",
    ]],
  },
  {
    file: "wasm/assembly/tensor/functions.ts",
    tests: ops,
    name: "unary on wasm",
    faults: [["gelu by tanh has another constant", "0.07135481282553", "0.07235481282553"]],
  },
  {
    file: "wasm/assembly/attention/parts.ts",
    tests: ops,
    name: "attention on wasm",
    faults: [[
      "a window shows one position less",
      "position - window + 1 : 0",
      "position - window + 2 : 0",
    ]],
  },
  {
    file: "wasm/assembly/network/pool.ts",
    tests: ops,
    name: "pool on wasm",
    faults: [[
      "pads behind the input do not count",
      "dilation < size + end) count++",
      "dilation < size) count++",
    ]],
  },
  {
    file: "gpu/kernels/softmax.ts",
    tests: gpu,
    name: "softmax on WebGPU",
    faults: [["a line far below 0 is lost", "var most = x[at];", "var most = 0.0;"]],
  },
  {
    file: "gpu/kernels/norm.ts",
    tests: gpu,
    name: "norm on WebGPU",
    faults: [[
      "the spread is taken from 0",
      "let distance = x[at + i] - mean;",
      "let distance = x[at + i];",
    ]],
  },
  {
    file: "gpu/kernels/rope.ts",
    tests: gpu,
    name: "rope_table on WebGPU",
    faults: [[
      "the third quadrant has the cosine of the first",
      "quadrant == 1u || quadrant == 2u,",
      "quadrant == 1u,",
    ]],
  },
  {
    file: "gpu/kernels/resize.ts",
    tests: gpu,
    name: "resize on WebGPU",
    faults: [["rows do not weigh", "let weight = row_weights[r];", "let weight = 1.0;"]],
  },
  {
    file: "gpu/kernels/attention/spans.ts",
    tests: ["engine/run/gpu/attention_test.ts"],
    faults: [
      [
        "a window shows one position more",
        "u32(max(${least}, position + 1 - ${window}))",
        "u32(max(${least}, position - ${window}))",
      ],
      ["slopes raise what is far away", '"own - slopes[head]', '"own + slopes[head]'],
    ],
  },
  {
    file: "gpu/kernels/quantize_group.ts",
    tests: ["engine/run/gpu/matmul_test.ts"],
    faults: [["the greatest code is never reached", "nan${p}) / 127.0", "nan${p}) / 150.0"]],
  },
  {
    file: "gpu/kernels/cache_pages.ts",
    tests: ["engine/run/gpu/states_test.ts"],
    faults: [["slots lie in each other", "${slot} * ${perSlot}u", "${slot}"]],
  },
];
