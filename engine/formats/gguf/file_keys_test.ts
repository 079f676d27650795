// Every key beside an architecture's and a text's that gguf-py's constants.py lists, at an unusual value: read,
// refused by name, or harmless for a reason; others are unknown.

import { assertEquals, assertThrows } from "@std/assert";
import { UnsupportedError } from "../../errors.ts";
import { useOf } from "../field_table.ts";
import type { MetadataValue } from "../source.ts";
import { GGUF_FILE_FIELDS, unknownFileKeys } from "./file_keys.ts";

const SOURCE = ["url", "doi", "uuid", "repo_url"];
const ORIGIN = ["name", "author", "version", "organization", "description", ...SOURCE];
const HARMLESS = [
  "file_type",
  ...["author", "version", "organization", "finetune", "basename", "description"],
  ...["quantized_by", "size_label", "license.name", "license.link", ...SOURCE, "tags", "languages"],
  ...SOURCE.map((name) => `source.${name}`),
  ...["base_model", "dataset"].flatMap((part) => [
    `${part}.count`,
    ...ORIGIN.map((name) => `${part}.0.${name}`),
  ]),
  ...["sequence", "top_k", "top_p", "min_p", "xtc_probability", "xtc_threshold", "temp"].map(
    (name) => `sampling.${name}`,
  ),
  ...["penalty_last_n", "penalty_repeat", "mirostat", "mirostat_tau", "mirostat_eta"].map(
    (name) => `sampling.${name}`,
  ),
].map((name) => `general.${name}`);

const AT = { file: "toy.gguf", own: ["llama.", "tokenizer."] };
const unknown = (key: string, value: MetadataValue) => unknownFileKeys(new Map([[key, value]]), AT);

Deno.test("keys that change nothing say why", () => {
  const imatrix = ["file", "dataset", "entries_count", "chunks_count"];
  for (const key of [...HARMLESS, ...imatrix.map((name) => `quantize.imatrix.${name}`)]) {
    const use = useOf(GGUF_FILE_FIELDS, key);
    assertEquals(typeof use === "object" && "harmless" in use, true, key);
    assertEquals(unknown(key, "unusual"), [], key);
  }
});

Deno.test("a file that is no model, and blocks of another version, are refused by name", () => {
  assertEquals(unknown("general.type", "model"), []);
  assertEquals(unknown("general.quantization_version", 2), []);
  for (
    const [key, values] of [
      ["general.type", ["adapter", "mmproj", "imatrix"]],
      ["general.quantization_version", [1, 3]],
    ] as const
  ) {
    for (const value of values) {
      assertThrows(() => unknown(key, value), UnsupportedError, `toy.gguf, metadata, ${key}: is`);
    }
  }
});

Deno.test("keys of nobody are unknown, those with tables elsewhere are left to them", () => {
  assertEquals(unknown("general.brand_new", 1), ["general.brand_new"]);
  assertEquals(unknown("clip.has_vision_encoder", true), ["clip.has_vision_encoder"]);
  assertEquals(unknown("llama.brand_new", 1), []);
});
