// Faults in what ops mean: their references, with which every kernel is compared, and their shapes.

import type { FaultGroup } from "./fault.ts";

const moving = ["engine/ops/records/moving_ops_test.ts", "engine/ops/records/references_test.ts"];
const computing = [
  "engine/ops/records/computing_ops_test.ts",
  "engine/ops/records/references_test.ts",
];
const network = ["engine/ops/records/network_ops_test.ts", "engine/ops/records/references_test.ts"];

/** Definitions. */
export const opFaults: readonly FaultGroup[] = [
  {
    file: "engine/ops/resize_taps.ts",
    tests: ["engine/ops/resize_taps_test.ts"],
    faults: [
      ["cubic weights are others far away", "- 5 * a) * x + 8 * a)", "- 5 * a) * x + 7 * a)"],
      [
        "elements beyond the edge weigh something",
        "index >= 0 && index < from",
        "index >= 0 && index <= from",
      ],
    ],
  },
  {
    file: "engine/ops/records/cumulative.ts",
    tests: moving.concat(computing),
    faults: [["sums always begin in front", "(reverse ? size - 1 - i : i)", "(reverse ? i : i)"]],
  },
  {
    file: "engine/ops/records/one_hot.ts",
    tests: moving.concat(computing),
    faults: [["negative indices set nothing", "if (index < -size ||", "if (index < 0 ||"]],
  },
  {
    file: "engine/ops/records/trilu.ts",
    tests: moving.concat(computing),
    faults: [["the diagonal goes with the lower triangle", "diagonal >= k :", "diagonal > k :"]],
  },
  {
    file: "engine/ops/records/pool.ts",
    tests: network,
    faults: [["averages never count pads", "count_pads ? padded : places", "places"]],
  },
  {
    file: "engine/ops/windows.ts",
    tests: network,
    faults: [[
      "the odd pad of same_upper is in front",
      'window.padding === "same_upper"',
      'window.padding === "same_lower"',
    ]],
  },
  {
    file: "engine/ops/records/norm.ts",
    tests: ["engine/ops/records/references_test.ts", "engine/ops/records/computing_ops_test.ts"],
    faults: [["epsilon is left out", "squares / width + epsilon", "squares / width"]],
  },
  {
    file: "engine/ops/records/slice.ts",
    tests: moving,
    faults: [["steps are all 1", "stride * attributes.steps[axis]!)", "stride)"]],
  },
];
