// The table of fuzz targets. What must hold for any input stands beside the tests of its part
// (tests/support/fuzz_*.ts); here are only names, seeds and the words that mutations may insert.

import {
  fuzzGguf,
  fuzzSafetensors,
  ggufSeeds,
  safetensorsSeeds,
} from "../../tests/support/fuzz_formats.ts";
import { fuzzGgufHeader, fuzzSafetensorsHeader } from "../../tests/support/fuzz_headers.ts";
import { fuzzIni, fuzzSpec, iniSeeds, specSeeds } from "../../tests/support/fuzz_config.ts";
import { fuzzOnnx, onnxSeeds } from "../../tests/support/fuzz_onnx.ts";
import { fuzzPicture, pictureSeeds } from "../../tests/support/fuzz_pictures.ts";
import { fuzzRequest, requestSeeds } from "../../tests/support/fuzz_requests.ts";
import { fuzzSampling } from "../../tests/support/fuzz_sampling.ts";
import { fuzzPickle, pickleSeeds } from "../../tests/support/fuzz_checkpoints.ts";
import { fuzzSentencePiece, sentencePieceSeeds } from "../../tests/support/fuzz_tokenizers.ts";
import {
  fuzzTemplate,
  fuzzTokenizerJson,
  templateSeeds,
  tokenizerJsonSeeds,
} from "../../tests/support/fuzz_text.ts";

/** Targets that take text get the bytes as UTF-8, broken parts replaced. */
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** One thing that takes bytes from strangers. */
export interface FuzzTarget {
  /** Good inputs. */
  seeds(): readonly Uint8Array[];
  /** Pieces of the format's own language. */
  readonly words: readonly string[];
  /** Throws when something must not have happened. */
  run(input: Uint8Array): void | Promise<void>;
}

/** Targets that do what no target should, by which the harness itself is tested. */
export const badTargets: Readonly<Record<string, FuzzTarget>> = {
  "bad-hang": badTarget(() => {
    for (;;);
  }),
  "bad-throw": badTarget(() => {
    throw new Error("as planned");
  }),
  "bad-memory": badTarget(() => {
    kept.push(new Uint8Array(64e6).fill(1));
  }),
};

const kept: Uint8Array[] = [];

/** Good seeds pass; mutated inputs do harm. */
function badTarget(harm: () => void): FuzzTarget {
  const seed = new TextEncoder().encode("good");
  return {
    seeds: () => [seed],
    words: [],
    run: (input) => {
      if (new TextDecoder().decode(input) !== "good") harm();
    },
  };
}

/** Targets by name. */
export const targets: Readonly<Record<string, FuzzTarget>> = {
  pictures: {
    seeds: pictureSeeds,
    words: ["Exif\0\0", "IHDR", "PLTE", "tRNS", "IDAT", "VP8X", "VP8L", "EXIF"],
    run: fuzzPicture,
  },
  gguf: {
    seeds: ggufSeeds,
    words: [
      "GGUF",
      "general.architecture",
      "general.alignment",
      "llama.block_count",
      "split.count",
    ],
    run: fuzzGguf,
  },
  // Inputs of these three are no files: chains and headers are drawn from their bytes.
  "gguf-header": { seeds: () => [bytesOf("gguf header")], words: [], run: fuzzGgufHeader },
  "safetensors-header": {
    seeds: () => [bytesOf("safetensors header")],
    words: [],
    run: fuzzSafetensorsHeader,
  },
  sampling: { seeds: () => [bytesOf("sampling")], words: [], run: fuzzSampling },
  onnx: {
    seeds: onnxSeeds,
    words: ["If", "Loop", "Reshape", "Shape", "body", "axis", "sumN", "N"],
    run: fuzzOnnx,
  },
  safetensors: {
    seeds: safetensorsSeeds,
    words: ['"dtype":"F32"', '"shape":[', '"data_offsets":[0,', "__proto__", "1e308", "-1", "[[[["],
    run: fuzzSafetensors,
  },
  tokenizer: {
    seeds: () => tokenizerJsonSeeds().map(bytesOf),
    words: ['"type":"BPE"', '"vocab":{', '"merges":[', "null", "-1", "1e9", '"\\ud800"', "[[[["],
    run: (input) => fuzzTokenizerJson(textOf(input)),
  },
  template: {
    seeds: () => templateSeeds().map(bytesOf),
    words: [
      "{% for x in range(10**9) %}",
      "{% endfor %}",
      "{{",
      "}}",
      "messages",
      "|join",
      "**",
      "loop.",
    ],
    run: (input) => fuzzTemplate(textOf(input)),
  },
  pickle: {
    seeds: pickleSeeds,
    words: [
      "ctorch._utils\n_rebuild_tensor_v2\n",
      "ctorch\nHalfStorage\n",
      "ccollections\nOrderedDict\n",
      "cos\nsystem\n",
      "storage",
      "(2222t",
      "q\u0000h\u0000",
    ],
    run: fuzzPickle,
  },
  ini: {
    seeds: () => iniSeeds().map(bytesOf),
    words: [
      "[main]\n",
      "[model.a]\n",
      "${",
      "$(",
      "}",
      "\nmodels = ",
      "query_count = 9",
      '{"',
      "\n;",
    ],
    run: (input) => fuzzIni(textOf(input)),
  },
  spec: {
    seeds: () => specSeeds().map(bytesOf),
    words: [
      '"tensors":{',
      '"rows":{"count":',
      '"heads // 0"',
      '"headDim * headDim"',
      "{i}",
      "{j}",
      "1e308",
      "-1",
      "null",
      '"__proto__":',
    ],
    run: (input) => fuzzSpec(textOf(input)),
  },
  requests: {
    seeds: () => requestSeeds().map(bytesOf),
    words: [
      ...['"stream":true', '"n":3', '"stop":[', '"__proto__":', '"tools":[{', '"logit_bias":{'],
      ...['"schema":{', "null", "-1", "1e308", '"\\ud800"', "[[[[", "/v1/", "POST ", "PUT "],
    ],
    run: fuzzRequest,
  },
  sentencepiece: {
    seeds: sentencePieceSeeds,
    words: ["\n\u0006\n\u0001a", "\u0012\u0002\u0018\u0001", "\u2581", "<0x41>", "\u0018\u0004"],
    run: fuzzSentencePiece,
  },
};
