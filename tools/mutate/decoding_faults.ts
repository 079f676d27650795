// Faults in what happens between logits and tokens: samplers, beams, sessions, measures.

import type { FaultGroup } from "./fault.ts";

const STEPS = "engine/decode/sampling/steps";
const tests = ["engine/decode/sampling/steps_test.ts", "engine/decode/sampling/sampler_test.ts"];

/** From logits to tokens. */
export const decodingFaults: readonly FaultGroup[] = [
  {
    file: "engine/decode/beam_search.ts",
    tests: ["tests/beams_test.ts"],
    faults: [
      ["a text that ends just outside the beams counts", "rank < width", "rank <= width"],
      ["scores divide by another length", "sum / ids.length **", "sum / (ids.length + 1) **"],
      ["too few continuations are looked at", "logits, 2 * width)", "logits, width)"],
      [
        "the search ends when the best text, not the worst, is out of reach",
        "finished.at(-1)!",
        "finished[0]!",
      ],
      [
        "a search that never ends early does",
        'earlyStopping === "never" &&',
        'earlyStopping !== "never" &&',
      ],
    ],
  },
  {
    file: "engine/decode/beam_slots.ts",
    tests: ["engine/decode/beam_search_test.ts"],
    faults: [["a copy lands on a beam that is in use", "!parents.has(slot)", "slot >= 0"]],
  },
  {
    file: `${STEPS}/dry.ts`,
    tests,
    faults: [
      [
        "the allowed length counts once more",
        "length - p.allowed_length,",
        "length - p.allowed_length + 1,",
      ],
      ["the window has no end", ": Math.min(length, p.penalty_last_n)", ": length"],
    ],
  },
  {
    file: `${STEPS}/fsd.ts`,
    tests,
    faults: [["the n-gram model is not smoothed", "seen / (total + 1)", "seen / total"]],
  },
  {
    file: `${STEPS}/min_p.ts`,
    tests,
    faults: [[
      "the limit is a probability",
      "distance: Math.log(min_p)",
      "distance: min_p - 1",
    ]],
  },
  {
    file: `${STEPS}/mirostat.ts`,
    tests,
    faults: [
      ["the surprise begins at its target", "? 2 * tau", "? tau"],
      ["the limit moves away from its target", "- eta * (", "+ eta * ("],
    ],
  },
  {
    file: `${STEPS}/mirostat_v1.ts`,
    tests,
    faults: [["ranks are counted from another number", "(i + 2) / (i + 1)", "(i + 3) / (i + 2)"]],
  },
  {
    file: `${STEPS}/penalties.ts`,
    tests: ["engine/decode/sampling/penalties_test.ts"],
    faults: [
      [
        "a penalty favours tokens below 0",
        "logit > 0 ? logit / p.repeat_penalty : logit * p.repeat_penalty",
        "logit / p.repeat_penalty",
      ],
      ["frequency does not count", "count * p.frequency_penalty", "p.frequency_penalty"],
    ],
  },
  {
    file: `${STEPS}/temperature.ts`,
    tests,
    faults: [["a sure choice is heated most", "low + (high - low) *", "high - (high - low) *"]],
  },
  {
    file: `${STEPS}/tfs.ts`,
    tests,
    faults: [["the second difference is none", "- 2 * weights[i + 1]!", "- weights[i + 1]!"]],
  },
  {
    file: `${STEPS}/top_n_sigma.ts`,
    tests,
    faults: [["the spread is taken from 0", "squares / count - mean * mean", "squares / count"]],
  },
  {
    file: `${STEPS}/top_p.ts`,
    tests,
    faults: [["the least number of tokens is forgotten", "Math.max(min_k, nucleus)", "nucleus"]],
  },
  {
    file: `${STEPS}/typical.ts`,
    tests,
    faults: [
      [
        "likely tokens are always typical",
        "Math.abs(typicalLogit - logits[i]!)",
        "typicalLogit - logits[i]!",
      ],
    ],
  },
  {
    file: `${STEPS}/xtc.ts`,
    tests,
    faults: [
      [
        "the last of the choices goes too",
        "topChoices(candidates, threshold) - 1",
        "topChoices(candidates, threshold)",
      ],
      ["a threshold of one half does nothing", "threshold > 0.5", "threshold >= 0.5"],
    ],
  },
  {
    file: "engine/decode/sampling/candidates.ts",
    tests,
    faults: [
      ["entropy has the wrong sign", "Math.log(mass) - sum / mass", "Math.log(mass) + sum / mass"],
      [
        "a token at the limit is dropped",
        "if (!(logits[i]! - max >= limit))",
        "if (!(logits[i]! - max > limit))",
      ],
    ],
  },
  {
    file: "engine/decode/sampling/chain.ts",
    tests,
    faults: [[
      "a chain without a draw gets none",
      "!steps.some((step) => step.isDraw)",
      "steps.length === 0",
    ]],
  },
  {
    file: "engine/decode/sampling/order.ts",
    tests: ["engine/decode/sampling/order_test.ts"],
    faults: [["among equals the last comes first", "&& ids[a]! > ids[b]!", "&& ids[a]! < ids[b]!"]],
  },
  {
    file: "engine/decode/sampling/random.ts",
    tests: ["engine/decode/sampling/random_test.ts"],
    faults: [[
      "numbers reach 2",
      "nextBits(state, 27)) / 2 ** 53",
      "nextBits(state, 27)) / 2 ** 52",
    ]],
  },
  {
    file: "engine/decode/timeline_session.ts",
    tests: ["tests/session_test.ts"],
    faults: [
      [
        "a prompt that is known whole has no logits of its own",
        "if (kept === tokens.length && kept > 0) kept--;",
        "",
      ],
    ],
  },
  {
    file: "engine/decode/session_file.ts",
    tests: ["engine/decode/session_file_test.ts"],
    faults: [[
      "files of older versions are read",
      "version !== WITH_PICTURES",
      "version > WITH_PICTURES",
    ]],
  },
  {
    file: "engine/decode/context_slide.ts",
    tests: ["tests/generate_test.ts"],
    name: "slid",
    faults: [[
      "a full context drops too little",
      "Math.ceil(movable / 2)",
      "Math.ceil(movable / 4)",
    ]],
  },
  {
    file: "engine/decode/generate_options.ts",
    tests: ["tests/generate_test.ts"],
    name: "option",
    faults: [[
      "any number of log-probabilities is taken",
      "value: logprobs, min: 0, max: 100",
      "value: logprobs, min: 0, max: 1000",
    ]],
  },
  {
    file: "engine/pipelines/perplexity.ts",
    tests: ["engine/pipelines/perplexity_test.ts"],
    faults: [
      ["the first token of a text is not scored", "index + 1 < bos.length", "index < bos.length"],
      [
        "the error is that of all tokens, not of a sample",
        "Math.max(1, scored - 1)",
        "Math.max(1, scored)",
      ],
    ],
  },
];
