// Faults between a file's numbers and a model, and in the command line.

import type { FaultGroup } from "./fault.ts";

/** Numbers that models are built from. */
export const modelFaults: readonly FaultGroup[] = [
  {
    file: "engine/models/rope.ts",
    tests: ["engine/models/rope_test.ts"],
    faults: [
      [
        "YaRN's slow boundary has another default",
        '"yarn_beta_slow"], 1)',
        '"yarn_beta_slow"], 2)',
      ],
      [
        "YaRN's fast boundary has another default",
        '"yarn_beta_fast"], 32)',
        '"yarn_beta_fast"], 31)',
      ],
      [
        "the fast boundary is rounded up",
        "truncate ? Math.floor(fast)",
        "truncate ? Math.ceil(fast)",
      ],
      [
        "long texts are magnified by another root",
        "Math.log(factor) / Math.log(beyond)",
        "Math.log(factor) / Math.log(context)",
      ],
      [
        "Llama 3 blends up to another frequency",
        "(turns - low) / (high - low)",
        "(turns - low) / high",
      ],
    ],
  },
  {
    file: "engine/models/hparams.ts",
    tests: ["engine/models/hparams_test.ts"],
    faults: [["heads need not share keys alike", "heads % kvHeads !== 0", "heads < kvHeads"]],
  },
  {
    file: "engine/models/blocks/embedding.ts",
    tests: ["tests/beams_test.ts"],
    faults: [["padding has a position", "isText[padId] = 0;", "isText[padId] = 1;"]],
  },
  {
    file: "engine/plan/liveness.ts",
    tests: ["engine/plan/planner_test.ts"],
    faults: [[
      "a result is written over before it is read",
      "for (const value of graph.outputs) extend(value, end);",
      "",
    ]],
  },

  {
    file: "engine/plan/reuse_inputs.ts",
    tests: ["engine/plan/reuse_inputs_test.ts"],
    faults: [[
      "a tensor that others read is written over",
      "read.nodes.size === 1",
      "read.nodes.size >= 1",
    ]],
  },
  {
    file: "wasm/allocator.ts",
    tests: ["wasm/allocator_test.ts"],
    faults: [[
      "the last block of a memory cannot be had",
      "top + size > limit",
      "top + size >= limit",
    ]],
  },
  {
    file: "engine/cli/args.ts",
    tests: ["engine/cli/args_test.ts"],
    faults: [
      [
        "the largest number allowed is refused",
        "number > (flag.max ?? Infinity)",
        "number >= (flag.max ?? Infinity)",
      ],
      [
        "the last of two values counts",
        "if (Object.hasOwn(values, name)) throw",
        'if (Object.hasOwn(values, "")) throw',
      ],
    ],
  },
  {
    file: "engine/nearest.ts",
    tests: ["engine/cli/args_test.ts"],
    faults: [
      ["swapped letters are two mistakes", "a[i - 1] === b[j - 2] &&", "a[i - 1] === b[j - 1] &&"],
    ],
  },
  {
    file: "engine/pipelines/speech/speech_segments.ts",
    tests: ["engine/pipelines/speech/speech_segments_test.ts"],
    faults: [
      [
        "speech ends where it began to be sure",
        "Math.max(threshold - 0.15, 0.01)",
        "Math.max(threshold, 0.01)",
      ],
      [
        "speech of the least length counts",
        "silence - start > minSpeech",
        "silence - start >= minSpeech",
      ],
      [
        "neighbours grow into each other",
        "silence < 2 * pad ? half : pad",
        "silence < 0 ? half : pad",
      ],
    ],
  },
  {
    file: "engine/pipelines/ocr/text_boxes.ts",
    tests: ["engine/pipelines/ocr/text_boxes_test.ts"],
    faults: [["doubtful boxes are kept", "< BOX_THRESHOLD) return []", "< 0) return []"]],
  },
  {
    file: "engine/pipelines/ocr/picture.ts",
    tests: ["engine/pipelines/ocr/picture_test.ts"],
    faults: [["ties go up", "? floor + floor % 2 :", "? floor + 1 :"]],
  },
  {
    file: "engine/pipelines/ocr/rectangle.ts",
    tests: ["engine/pipelines/ocr/rectangle_test.ts"],
    faults: [["the largest rectangle is taken", "area >= best.area", "area <= best.area"]],
  },
  {
    file: "engine/pipelines/ocr/ctc.ts",
    tests: ["engine/pipelines/ocr/ctc_test.ts"],
    faults: [
      [
        "letters repeat as long as they are seen",
        "best !== BLANK && best !== last",
        "best !== BLANK",
      ],
      [
        "a blank does not part equal letters",
        "    last = best;",
        "    if (best !== BLANK) last = best;",
      ],
    ],
  },
];
