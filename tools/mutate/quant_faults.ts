// Faults in number formats and in what chooses codes.

import type { FaultGroup } from "./fault.ts";

const formats = ["quant/mod_test.ts", "quant/every_format_test.ts"];

/** How numbers are stored. */
export const quantFaults: readonly FaultGroup[] = [
  {
    file: "quant/formats/q4_k.ts",
    tests: formats,
    faults: [["scales and minima change places", "floats: [0, 2]", "floats: [2, 0]"]],
  },
  {
    file: "quant/formats/q6_k.ts",
    tests: formats,
    faults: [["codes are centred at 31", "offset: 32,", "offset: 31,"]],
  },
  {
    file: "quant/formats/q5_k.ts",
    tests: formats,
    faults: [["fifth bits lie as nibbles do", "bits: 1, run: 32", "bits: 1, run: 64"]],
  },
  {
    file: "quant/k_scales.ts",
    tests: formats,
    faults: [
      [
        "high bits of a minimum come from its neighbour",
        "| ((bytes[at + i]! >> 6) << 4)",
        "| ((bytes[at + i - 4]! >> 6) << 4)",
      ],
    ],
  },
  {
    file: "quant/half.ts",
    tests: ["quant/half_test.ts"],
    faults: [
      ["ties of bfloat16 go up", "bits + 0x7fff + ((bits >>> 16) & 1)", "bits + 0x8000"],
    ],
  },
  {
    file: "quant/encoders.ts",
    tests: [...formats, "quant/papers_test.ts"],
    faults: [[
      "the greatest code is never reached",
      "signedExtreme(values, o, 32)) / 127",
      "signedExtreme(values, o, 32)) / 128",
    ]],
  },
  {
    file: "quant/formats/e0m4.ts",
    tests: ["quant/papers_test.ts"],
    faults: [["scale and bias change places", "floats: [0, 2]", "floats: [2, 0]"]],
  },
  {
    file: "quant/formats/mxfp4.ts",
    tests: formats,
    faults: [["neighbours share a byte", "bits: 4, run: 16", "bits: 4, run: 1"]],
  },
  {
    file: "quant/formats/iq4_nl.ts",
    tests: formats,
    faults: [["levels start one byte late", "at: 2, bits: 4", "at: 1, bits: 4"]],
  },
  {
    file: "quant/formats/tq1_0.ts",
    tests: formats,
    faults: [[
      "base-3 digits are rounded down",
      "(number * 256 + 242) / 243",
      "number * 256 / 243",
    ]],
  },
  {
    file: "quant/formats/lf8.ts",
    tests: ["quant/papers_test.ts"],
    faults: [[
      "the paper's levels are those of the code",
      '"paper" ? 127.5 : 127',
      '"paper" ? 127 : 127',
    ]],
  },
  {
    file: "functions/special.ts",
    tests: ["quant/q8_activation_test.ts"],
    faults: [["ties go up", "rest === 0.5 ? floor % 2 !== 0 :", "rest === 0.5 ? true :"]],
  },
  {
    file: "quant/gptq.ts",
    tests: ["quant/gptq_test.ts"],
    faults: [
      ["damping forgets how large the inputs are", ": DAMPING * mean", ": DAMPING"],
      [
        "the least important columns come first",
        "diagonal[b]! - diagonal[a]! ||",
        "diagonal[a]! - diagonal[b]! ||",
      ],
    ],
  },
  {
    file: "quant/awq.ts",
    tests: ["quant/awq_test.ts"],
    faults: [["the worst scales are taken", "ratio < best.ratio", "ratio > best.ratio"]],
  },
  {
    file: "quant/outliers.ts",
    tests: ["quant/outliers_test.ts"],
    faults: [[
      "ties are all taken",
      "(size === magnitude && tiesLeft-- <= 0)",
      "(size === magnitude && false)",
    ]],
  },
  {
    file: "quant/policy.ts",
    tests: ["quant/policy_test.ts"],
    faults: [[
      "vectors are quantised",
      "(KEPT.includes(role) || shape.length < 2)",
      "KEPT.includes(role)",
    ]],
  },
];
