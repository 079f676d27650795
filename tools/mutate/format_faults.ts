// Faults in readers of files and in what fetches them.

import type { FaultGroup } from "./fault.ts";

/** From bytes to tensors. */
export const formatFaults: readonly FaultGroup[] = [
  {
    file: "engine/formats/gguf/cursor.ts",
    tests: ["engine/formats/hostile_test.ts"],
    faults: [["a length may go past the end", "if (count > left)", "if (count > 2 * left)"]],
  },
  {
    file: "engine/formats/gguf/header.ts",
    tests: ["engine/formats/gguf/gguf_test.ts"],
    faults: [[
      "tensors begin inside the header",
      "Math.ceil(headerBytes / alignment)",
      "Math.floor(headerBytes / alignment)",
    ]],
  },
  {
    file: "engine/formats/gguf/split.ts",
    tests: ["engine/formats/gguf/gguf_test.ts"],
    faults: [["parts may lack tensors", "total !== tensors.size", "total < tensors.size"]],
  },
  {
    file: "engine/formats/safetensors/safetensors.ts",
    tests: ["engine/formats/safetensors/safetensors_test.ts", "engine/formats/hostile_test.ts"],
    faults: [[
      "a header may be longer than the file",
      "length > BigInt(source.size - 8)",
      "length > BigInt(source.size + 8)",
    ]],
  },
  {
    file: "engine/formats/strict_json.ts",
    tests: ["engine/formats/strict_json_test.ts"],
    faults: [
      [
        "a key may come twice",
        "if (keys && isKey(text, end + 1))",
        "if (keys && keys.size > 9 && isKey(text, end + 1))",
      ],
      [
        "an escaped quote ends a text",
        'if (character === "\\\\") i++;',
        'if (character === "\\\\") i += 0;',
      ],
    ],
  },
  {
    file: "engine/formats/llama2c/llama2c.ts",
    tests: ["engine/formats/llama2c/llama2c_test.ts"],
    faults: [[
      "any small numbers are a llama2.c file",
      "&& legacySize(shape) === size",
      "&& legacySize(shape) >= 0",
    ]],
  },

  {
    file: "engine/formats/hub/download.ts",
    tests: ["engine/formats/hub/download_test.ts"],
    faults: [
      [
        "a file that changes between two ranges is taken",
        "current.total === partial.size &&\n      current.etag === partial.etag",
        "current.total === partial.size",
      ],
    ],
  },
  {
    file: "engine/formats/hub/ranges.ts",
    tests: ["engine/formats/hub/ranges_test.ts"],
    faults: [["ranges that touch stay apart", "range[1] < start", "range[1] <= start"]],
  },
  {
    file: "engine/formats/hub/zip.ts",
    tests: ["engine/formats/hub/zip_test.ts"],
    faults: [["checksums are not compared", "crc !== entry.crc32", "crc !== crc"]],
  },
  {
    file: "engine/formats/hub/partial.ts",
    tests: ["engine/formats/hub/download_test.ts"],
    faults: [[
      "what was begun from another address is gone on with",
      "!note || note.url !== url",
      "!note",
    ]],
  },
  {
    file: "engine/formats/hub/output.ts",
    tests: ["engine/formats/hub/download_test.ts"],
    faults: [["any content will do", "found.sha256 !== expected.sha256", 'found.sha256 === ""']],
  },
  {
    file: "engine/formats/hub/retry.ts",
    tests: ["engine/formats/hub/retry_test.ts"],
    faults: [["one try more is made", "++failures >= attempts", "++failures > attempts"]],
  },
  {
    file: "engine/formats/media/wav.ts",
    tests: ["engine/formats/media/wav_test.ts"],
    faults: [[
      "silence in 8 bit is not 0",
      "(view.getUint8(at) - 128) / 128",
      "(view.getUint8(at) - 127) / 128",
    ]],
  },
  {
    file: "engine/formats/media/png.ts",
    tests: ["engine/formats/media/png_test.ts"],
    faults: [["check sums are not compared", "!== view.getUint32(end)", "=== -1"]],
  },
  {
    file: "engine/formats/media/picture.ts",
    tests: ["engine/formats/media/png_test.ts"],
    faults: [[
      "what is transparent is black",
      "255 + (value - 255) * alpha / 255",
      "value * alpha / 255",
    ]],
  },
  {
    file: "engine/formats/media/jpeg.ts",
    tests: ["engine/formats/media/jpeg_test.ts"],
    faults: [[
      "what libjpeg warns of is no error",
      "!picture || /premature",
      "!picture && /premature",
    ]],
  },
];
