// Faults in tokenizers, templates and streams of text.

import type { FaultGroup } from "./fault.ts";

/** From text to tokens and back. */
export const textFaults: readonly FaultGroup[] = [
  {
    file: "engine/text/stop_strings.ts",
    tests: ["engine/text/stop_strings_test.ts"],
    faults: [
      [
        "a stop text inside the beginning of another is missed",
        "child.matched = Math.max(child.matched, child.fail.matched);",
        "",
      ],
    ],
  },
  {
    file: "engine/text/merge_bpe.ts",
    tests: ["engine/text/merge_bpe_test.ts"],
    faults: [[
      "of equal merges the last comes first",
      "cache.rank[slot] < bestRank",
      "cache.rank[slot] <= bestRank",
    ]],
  },
  {
    file: "engine/text/unigram.ts",
    tests: ["engine/text/unigram_test.ts", "engine/text/sentencepiece_test.ts"],
    faults: [["an unknown character costs no more than a rare one", "lowest - 10", "lowest"]],
  },
  {
    file: "engine/text/byte_level.ts",
    tests: ["engine/text/byte_level_test.ts"],
    faults: [["the soft hyphen is printed", "byte >= 0xae", "byte >= 0xad"]],
  },
  {
    file: "engine/text/special_split.ts",
    tests: ["engine/text/special_split_test.ts"],
    faults: [["a blank in front of a token stays", "if (own?.left)", "if (own?.right)"]],
  },
  {
    file: "engine/text/charsmap.ts",
    tests: ["engine/text/charsmap_test.ts"],
    faults: [["a match is one byte too short", "i + 1 - from", "i - from"]],
  },
  {
    file: "engine/text/oniguruma.ts",
    tests: ["engine/text/oniguruma_test.ts"],
    faults: [["^ is the beginning of the text alone", '"(?<![^\\\\n])"', '"(?<![^])"']],
  },
  {
    file: "engine/text/tokenizer_json/normalizer.ts",
    tests: ["engine/text/tokenizer_json/normalizer_test.ts"],
    faults: [[
      "accents go though case stays",
      '"strip_accents") ?? lowercase',
      '"strip_accents") ?? true',
    ]],
  },
  {
    file: "engine/text/jinja/lexer.ts",
    tests: ["engine/text/jinja/jinja_test.ts"],
    faults: [[
      "a line end behind a tag stays",
      'sign !== "+" && trimsLine &&',
      'sign === "+" && trimsLine &&',
    ]],
  },
  {
    file: "engine/text/jinja/python_text.ts",
    tests: ["engine/text/jinja/jinja_test.ts"],
    faults: [["large floats are written out", "size >= 1e16 ||", "size >= 1e21 ||"]],
  },
  {
    file: "engine/text/jinja/text_methods.ts",
    tests: ["engine/text/jinja/jinja_test.ts"],
    faults: [[
      "rsplit cuts at the left",
      "fromRight ? parts.length - limit : limit",
      "fromRight ? limit : limit",
    ]],
  },
];
