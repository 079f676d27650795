// Every file of tests/fixtures/gguf/hostile and of the public cases about files: what must load loads with
// the right values, what must not gets a typed one-line error, and memory stays in proportion.

import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertLess,
  assertStringIncludes,
} from "@std/assert";
import { getFormat } from "../../quant/mod.ts";
import { TroodonError } from "../errors.ts";
import { fixturePath, readFixture } from "../../tests/support/fixtures.ts";
import { openModel } from "../models/open_model.ts";
import type { TensorInfo, WeightFile } from "./source.ts";

interface HostileCase {
  readonly file: string;
  readonly defect: string;
  readonly verdict: "accept" | "reject" | "either";
  readonly expect?: Readonly<Record<string, GgufExpectation | readonly number[]>>;
}

interface GgufExpectation {
  readonly type: string;
  readonly shape_rows_first: readonly number[];
  readonly first8?: readonly number[];
}

/** Cases whose container is well formed; models/ has to refuse them. */
const LATER_STAGE = new Set(["gguf_block_count_huge.gguf", "gguf_head_count_0.gguf"]);

const OUTCOMES = {
  accept: "opens",
  reject: "is refused",
  either: "opens right or is refused",
} as const;

/** Words that a person needs to see; checked where the index asks for a certain message. */
const MUST_SAY: Readonly<Record<string, readonly string[]>> = {
  "gguf_big_endian.gguf": ["big-endian"],
  "gguf_type_unknown.gguf": ["9999", "blk.0.ffn_down.weight"],
  "gguf_type_removed.gguf": ["Q4_2"],
  "gguf_kv_type_unknown.gguf": ["99", "x.v"],
  "gguf_split_part.gguf": ["parts 2 to 3"],
  "gguf_dup_key.gguf": ["general.architecture", "twice"],
  "st_dtype_unknown.safetensors": ["Q4_9"],
  "st_index_missing_shard": ["model-00001-of-00002.safetensors"],
  "st_index_wrong_shard": ['"a"', "part.safetensors"],
  "duplicate_key.safetensors": ["twice"],
  "hole_between.safetensors": ["128 to 136"],
  "trailing_bytes.safetensors": ["2 bytes after"],
  "truncated.safetensors": ["4 bytes missing", "84"],
  "shape_bytes_mismatch.safetensors": ["20 bytes"],
  "unknown_dtype.safetensors": ["F5", '"w"'],
  "html_page.gguf": ["HTML page"],
  "html_page.safetensors": ["HTML page"],
  "lfs_pointer.gguf": ["Git LFS pointer"],
  "lfs_pointer.safetensors": ["Git LFS pointer"],
  "lfs_pointer.onnx": ["Git LFS pointer"],
  "empty.gguf": ["0 bytes"],
  "empty.safetensors": ["0 bytes"],
  "json_error.safetensors": ["Repository not found"],
};

async function tryOpen(path: string): Promise<WeightFile | TroodonError> {
  try {
    return await openModel(path);
  } catch (error) {
    assertInstanceOf(error, TroodonError);
    return error;
  }
}

function assertRefused(result: WeightFile | TroodonError, file: string): void {
  assertInstanceOf(result, TroodonError, "must be refused");
  assert(!result.message.includes("\n"), "one line");
  assertStringIncludes(result.message, file);
  for (const words of MUST_SAY[file] ?? []) assertStringIncludes(result.message, words);
}

async function readValues(tensor: TensorInfo): Promise<number[]> {
  const bytes = new Uint8Array(tensor.byteLength);
  await tensor.source.readInto(tensor.offset, bytes);
  const values = new Float32Array(tensor.shape.reduce((product, dim) => product * dim, 1));
  getFormat(tensor.format).decode(bytes, values);
  return [...values];
}

async function assertContent(model: WeightFile, expected: HostileCase["expect"]): Promise<void> {
  for (const [name, wanted] of Object.entries(expected ?? {})) {
    const tensor = model.tensors.get(name);
    assert(tensor, `tensor ${name} is missing`);
    if (!("shape_rows_first" in wanted)) {
      assertEquals(await readValues(tensor), [...wanted]);
      continue;
    }
    assertEquals([tensor.format, tensor.shape], [wanted.type, wanted.shape_rows_first]);
    if (wanted.first8) assertEquals((await readValues(tensor)).slice(0, 8), [...wanted.first8]);
  }
}

const hostile = JSON.parse(readFixture("gguf/hostile/index.json")) as { files: HostileCase[] };

for (const { file, defect, verdict, expect } of hostile.files) {
  const outcome = LATER_STAGE.has(file) ? "opens (models/ refuses it)" : OUTCOMES[verdict];
  Deno.test(`hostile file ${file} (${defect}) ${outcome}`, async () => {
    const path = fixturePath(`gguf/hostile/${file}`);
    const result = await tryOpen(path);
    if (result instanceof TroodonError) {
      assert(verdict !== "accept" && !LATER_STAGE.has(file), result.message);
      assertRefused(result, file);
      return;
    }
    assert(verdict !== "reject" || LATER_STAGE.has(file), "must be refused");
    await assertContent(result, expect);
    result.close();
  });
}

Deno.test("hostile files do not make memory grow", async () => {
  const before = Deno.memoryUsage().rss;
  for (let round = 0; round < 5; round++) {
    for (const { file } of hostile.files) {
      const result = await tryOpen(fixturePath(`gguf/hostile/${file}`));
      if (!(result instanceof TroodonError)) result.close();
    }
  }
  // 400 files of 86 KB in all; one trusted length would be 64 MB at least.
  assertLess(Deno.memoryUsage().rss - before, 48e6);
});

for (const id of ["pc-gguf-01", "pc-st-02", "pc-file-01"]) {
  const { cases } = JSON.parse(readFixture(`public/${id}/expected.json`)) as {
    cases: { file: string; verdict: string; expect: string }[];
  };
  for (const { file, verdict, expect } of cases) {
    // The refused files of pc-gguf-01 are well-formed containers with keys that no model can have.
    const refused = verdict === "refuse" && id !== "pc-gguf-01";
    Deno.test(`${id}/${file} ${refused ? "is refused" : "opens"}: ${expect}`, async () => {
      const result = await tryOpen(fixturePath(`public/${id}/${file}`));
      if (refused) assertRefused(result, file);
      else if (verdict !== "either") {
        assert(!(result instanceof TroodonError), String(result));
        result.close();
      }
    });
  }
}

Deno.test("GGUF integers of every width come as numbers and per-layer arrays as lists", async () => {
  const widths = await openModel(fixturePath("public/pc-gguf-01/integer_widths_and_order.gguf"));
  const expected = {
    "llama.block_count": 3,
    "llama.context_length": 64,
    "llama.embedding_length": 8,
    "llama.attention.head_count": 2,
    "llama.feed_forward_length": 16,
    "llama.rope.freq_base": 10000,
    "general.architecture": "llama",
  };
  for (const [key, value] of Object.entries(expected)) {
    assertEquals(widths.metadata.get(key), value, key);
  }
  widths.close();
  const perLayer = await openModel(fixturePath("public/pc-gguf-01/head_count_kv_array.gguf"));
  const heads = perLayer.metadata.get("llama.attention.head_count_kv");
  assertEquals([...heads as Int32Array], [1, 2, 1]);
  perLayer.close();
});

Deno.test("tensors named __proto__ and constructor are ordinary tensors and change no prototype", async () => {
  const model = await openModel(fixturePath("gguf/hostile/st_proto_name.safetensors"));
  assertEquals([...model.tensors.keys()].sort(), ["__proto__", "constructor"]);
  assertEquals(Object.getPrototypeOf({}), Object.prototype);
  model.close();
  const other = await openModel(fixturePath("gguf/hostile/st_valid.safetensors"));
  assertEquals(other.tensors.get("constructor"), undefined);
  other.close();
});
