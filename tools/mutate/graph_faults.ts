// Faults in graphs, plans and passes.

import type { FaultGroup } from "./fault.ts";

/** From dims to placed tensors. */
export const graphFaults: readonly FaultGroup[] = [
  {
    file: "engine/graph/dim/bounds.ts",
    tests: ["engine/graph/dim/dim_test.ts", "engine/graph/dim/property_test.ts"],
    faults: [
      [
        "a remainder may be smaller than its bound",
        "least = Math.max(1, b.min)",
        "least = Math.max(2, b.min)",
      ],
      [
        "a remainder is bounded by a divisor that it never reaches",
        "Math.min(a.max, b.max - 1)",
        "Math.min(a.max, b.max - 2)",
      ],
    ],
  },
  {
    file: "engine/graph/dim/calls.ts",
    tests: ["engine/graph/dim/dim_test.ts"],
    faults: [
      [
        "a quotient is never rounded up",
        "remainder === 0 ? floor : floor + 1",
        "remainder === 0 ? floor : floor",
      ],
      [
        "a quotient that may be 1 is taken for 0",
        "min >= 0 && max < least",
        "min >= 0 && max <= least",
      ],
    ],
  },
  {
    file: "engine/graph/dim/arithmetic.ts",
    tests: ["engine/graph/dim/dim_test.ts", "engine/graph/dim/property_test.ts"],
    faults: [["what may be equal is called greater", '"==" : ">="', '"==" : ">"']],
  },
  {
    file: "engine/graph/dim/compile.ts",
    tests: ["engine/graph/dim/dim_test.ts", "engine/graph/dim/property_test.ts"],
    faults: [
      [
        "a negative dividend leaves a negative remainder",
        "remainder < 0 ? remainder + divisor : remainder",
        "remainder",
      ],
    ],
  },
  {
    file: "engine/graph/dim/parse.ts",
    tests: ["engine/graph/dim/dim_test.ts"],
    faults: [[
      "a difference is taken the wrong way round",
      "sub(value, right)",
      "sub(right, value)",
    ]],
  },
  {
    file: "engine/plan/memory.ts",
    tests: ["engine/plan/memory_test.ts"],
    faults: [
      ["tensors that meet in one moment share memory", "a.first <= b.last", "a.first < b.last"],
      ["a gap of the very size is left unused", "gap >= item.bytes", "gap > item.bytes"],
      ["tensors lie unaligned", "alignUp(offset + item.bytes, alignment)", "offset + item.bytes"],
      [
        "the peak forgets what is live in a last moment",
        "change.set(last + 1, (change.get(last + 1) ?? 0) - bytes)",
        "change.set(last, (change.get(last) ?? 0) - bytes)",
      ],
    ],
  },
  {
    file: "engine/plan/planner.ts",
    tests: ["engine/plan/planner_test.ts"],
    faults: [[
      "memory that just suffices is refused",
      "arenaBytes > maxBytes",
      "arenaBytes >= maxBytes",
    ]],
  },
  {
    file: "engine/plan/schedule.ts",
    tests: ["engine/plan/schedule_test.ts"],
    faults: [
      [
        "a state is changed before all have read it",
        "if (reader !== place) add(reader);",
        "void reader;",
      ],
      ["a node waits for its own wave", "wave[other]!), Infinity) - 1", "wave[other]!), Infinity)"],
    ],
  },
  {
    file: "engine/plan/chains.ts",
    tests: ["engine/plan/chains_test.ts"],
    faults: [[
      "nodes that do not follow each other are chained",
      "old[place]! - 1",
      "old[place]! - 2",
    ]],
  },
  {
    file: "engine/run/wasm/thread_share.ts",
    tests: ["engine/run/wasm/thread_share_test.ts"],
    faults: [[
      "a product counts as one pass over its inputs",
      "i === 1 ? made * size",
      "i === 1 ? size",
    ]],
  },
  {
    file: "engine/plan/passes/fuse_activation.ts",
    tests: ["engine/plan/passes/fuse_convolution_test.ts"],
    faults: [
      [
        "a second activation takes the place of the first",
        'if (maker.attributes.activation !== "none") continue;',
        "",
      ],
    ],
  },
  {
    file: "engine/plan/passes/fold_batch_norm.ts",
    tests: ["engine/plan/passes/fold_batch_norm_test.ts"],
    faults: [
      ["epsilon is left out", "Math.sqrt(spread[i]! + epsilon)", "Math.sqrt(spread[i]!)"],
      ["the mean is added", "?? 0) - mean[i]!", "?? 0) + mean[i]!"],
    ],
  },
  {
    file: "engine/plan/passes/common_subexpressions.ts",
    tests: ["engine/plan/passes/common_subexpressions_test.ts"],
    faults: [
      [
        "attributes do not count",
        "alike.find(({ attributes }) => sameAttributes(attributes, node.attributes))",
        "alike[0]",
      ],
    ],
  },
  {
    file: "engine/plan/passes/recognize_norms.ts",
    tests: ["engine/plan/passes/recognize_norms_test.ts"],
    faults: [
      [
        "any power is a square",
        "singleNumber(power.inputs[1]!) === 2",
        "singleNumber(power.inputs[1]!) !== 1",
      ],
      ["a mean over any axis is a norm's", "axis === x.shape.length - 1", "axis! >= 0"],
    ],
  },
];
