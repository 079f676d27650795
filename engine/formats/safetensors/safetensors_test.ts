import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { fixturePath } from "../../../tests/support/fixtures.ts";
import { f32Bytes, writeSafetensors } from "../../../tests/support/write_gguf.ts";
import { FormatError, SourceError, UnsupportedError } from "../../errors.ts";
import { memorySource } from "../../io.ts";
import { openModel, openModelFolder } from "../../models/open_model.ts";
import { openSafetensors } from "./safetensors.ts";

const VALUES = f32Bytes([1, 2, 3, 4]);
const PLAIN = { w: { dtype: "F32", shape: [2, 2], data_offsets: [0, 16] } };

async function withFolder(
  files: Readonly<Record<string, Uint8Array | string>>,
  use: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = Deno.makeTempDirSync();
  try {
    for (const [name, content] of Object.entries(files)) {
      Deno.writeFileSync(
        `${folder}/${name}`,
        typeof content === "string" ? new TextEncoder().encode(content) : content,
      );
    }
    await use(folder);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

Deno.test("safetensors tensors come with shape, format and place, metadata as strings", async () => {
  const header = { __metadata__: { format: "pt" }, _hidden: PLAIN.w };
  const bytes = writeSafetensors(header, VALUES);
  const padded = new Uint8Array(bytes.length + 5);
  padded.set(bytes, 5);
  const model = await openSafetensors(memorySource("m", padded.subarray(5)));
  assertEquals(model.metadata, new Map([["format", "pt"]]));
  const tensor = model.tensors.get("_hidden")!; // only __metadata__ is reserved
  assertEquals([tensor.shape, tensor.format, tensor.byteLength], [[2, 2], "F32", 16]);
  const read = new Uint8Array(16);
  await tensor.source.readInto(tensor.offset, read);
  assertEquals(read, VALUES);
});

Deno.test("a header that is longer than the file by one byte is refused by its length", async () => {
  const bytes = writeSafetensors(PLAIN, VALUES);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(bytes.length - 7), true);
  await assertRejects(
    () => openSafetensors(memorySource("m", bytes)),
    FormatError,
    `header of ${bytes.length - 7} bytes, ${bytes.length - 8} follow`,
  );
});

Deno.test("tensors may stand in any order in the header and empty ones anywhere", async () => {
  const header = {
    b: { dtype: "F32", shape: [2], data_offsets: [8, 16] },
    none: { dtype: "I64", shape: [0, 7], data_offsets: [8, 8] },
    a: { dtype: "BF16", shape: [4], data_offsets: [0, 8] },
  };
  const model = await openSafetensors(memorySource("m", writeSafetensors(header, VALUES)));
  assertEquals([...model.tensors.keys()], ["a", "none", "b"]);
});

Deno.test("an absurd shape with a zero or an overflow in it does not pass", async () => {
  for (const shape of [[2 ** 52, 2 ** 52], [2 ** 53], [4, -1], [1e308, 1e308, 0.5]]) {
    const header = { w: { dtype: "F32", shape, data_offsets: [0, 16] } };
    await assertRejects(
      () => openSafetensors(memorySource("m", writeSafetensors(header, VALUES))),
      FormatError,
    );
  }
});

Deno.test("block formats are no safetensors dtypes", async () => {
  const header = { w: { dtype: "Q4_0", shape: [32], data_offsets: [0, 18] } };
  const file = writeSafetensors(header, new Uint8Array(18));
  await assertRejects(() => openSafetensors(memorySource("m", file)), UnsupportedError, "Q4_0");
});

Deno.test("a folder gives config.json as metadata and the texts beside it", async () => {
  const files = {
    "config.json": '{"model_type":"llama","rope_parameters":{"rope_theta":1}}',
    "model.safetensors": writeSafetensors(PLAIN, VALUES),
    "tokenizer.json": "{}",
  };
  await withFolder(files, async (folder) => {
    for (const path of [folder, `${folder}/model.safetensors`]) {
      const model = await openModel(path);
      assertEquals(model.metadata.get("model_type"), "llama");
      assertEquals(model.metadata.get("rope_parameters"), { rope_theta: 1 });
      assertEquals(await model.readText!("tokenizer.json"), "{}");
      assertEquals(await model.readText!("chat_template.jinja"), undefined);
      await assertRejects(() => model.readText!("../../etc/passwd"), FormatError, "plain");
      model.close();
    }
  });
});

Deno.test("a sharded checkpoint equals the single file, tensor by tensor", async () => {
  const sizes = { "model-1.safetensors": "a", "model-2.safetensors": "b" };
  const files: Record<string, Uint8Array | string> = {
    "model.safetensors.index.json": JSON.stringify({
      metadata: { total_size: 32 },
      weight_map: { a: "model-1.safetensors", b: "model-2.safetensors" },
    }),
  };
  for (const [name, tensor] of Object.entries(sizes)) {
    files[name] = writeSafetensors({ [tensor]: PLAIN.w }, VALUES);
  }
  await withFolder(files, async (folder) => {
    const model = await openModelFolder(folder);
    assertEquals([...model.tensors.keys()], ["a", "b"]);
    assert(model.tensors.get("b")!.source.name.endsWith("model-2.safetensors"));
    model.close();
  });
});

Deno.test("an index may neither leave its folder nor forget a tensor of a shard", async () => {
  const shard = writeSafetensors(PLAIN, VALUES);
  const index = (map: Record<string, unknown>) => JSON.stringify({ weight_map: map });
  const cases: [string, string][] = [
    [index({ w: "../s.safetensors" }), "plain file name"],
    [index({ w: 3 }), "must name a file"],
    ['{"weight_map":[]}', "no weight_map entries"],
    [index({}), "no weight_map entries"],
  ];
  for (const [text, words] of cases) {
    await withFolder(
      { "model.safetensors.index.json": text, "s.safetensors": shard },
      async (folder) => {
        await assertRejects(() => openModelFolder(folder), FormatError, words);
      },
    );
  }
  const two = { ...PLAIN, v: { dtype: "F32", shape: [1], data_offsets: [16, 20] } };
  await withFolder({
    "model.safetensors.index.json": index({ w: "s.safetensors" }),
    "s.safetensors": writeSafetensors(two, f32Bytes([1, 2, 3, 4, 5])),
  }, async (folder) => {
    await assertRejects(() => openModelFolder(folder), FormatError, 'does not place tensor "v"');
  });
});

Deno.test("a folder without weights or with several says which", async () => {
  const shard = writeSafetensors(PLAIN, VALUES);
  await withFolder({ "config.json": "{}" }, async (folder) => {
    await assertRejects(() => openModel(folder), SourceError, "no .safetensors, .gguf");
  });
  await withFolder({ "a.safetensors": shard, "b.safetensors": shard }, async (folder) => {
    await assertRejects(() => openModel(folder), SourceError, "a.safetensors, b.safetensors");
  });
  await withFolder({ "a.bin": shard, "b.pt": shard }, async (folder) => {
    await assertRejects(() => openModel(folder), SourceError, "a.bin, b.pt");
  });
});

Deno.test("nothing stays open when a model is refused", async () => {
  // Deno's own resource check fails this test if a file handle leaks.
  for (const name of ["st_trailing.safetensors", "gguf_overlap.gguf", "st_index_wrong_shard"]) {
    await assertRejects(() => openModel(fixturePath(`gguf/hostile/${name}`)), FormatError);
  }
  assertThrows(() => Deno.statSync(fixturePath("gguf/hostile/none")));
});
