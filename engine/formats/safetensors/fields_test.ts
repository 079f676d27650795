// Every field of a header and of an index, at an unusual value: read, refused by name, or without any effect.

import { assertEquals, assertRejects } from "@std/assert";
import { f32Bytes, writeSafetensors } from "../../../tests/support/write_gguf.ts";
import { FormatError, TroodonError, UnsupportedError } from "../../errors.ts";
import { memorySource } from "../../io.ts";
import { openSafetensors } from "./safetensors.ts";
import { openSafetensorsFolder } from "./folder.ts";

const VALUES = f32Bytes([1, 2, 3, 4]);
const ENTRY = { dtype: "F32", shape: [2, 2], data_offsets: [0, 16] };

const open = (header: Record<string, unknown>) =>
  openSafetensors(memorySource("m", writeSafetensors(header, VALUES)));

Deno.test("each field of a tensor is read or refused by name", async () => {
  const same = await open({ w: { ...ENTRY, dtype: "I32", shape: [4] } });
  const { format, shape } = same.tensors.get("w")!;
  assertEquals([format, shape], ["I32", [4]]);
  const refused: readonly (readonly [Record<string, unknown>, string])[] = [
    [{ dtype: "F16" }, "needs 8 bytes"],
    [{ dtype: "unusual" }, "its dtype"],
    [{ dtype: null }, "has no dtype"],
    [{ shape: [2, 3] }, "needs 24 bytes"],
    [{ shape: null }, "is no list of sizes"],
    [{ data_offsets: [0, 12] }, "needs 16 bytes"],
    [{ data_offsets: [4, 20] }, "4 bytes missing"],
    [{ data_offsets: null }, "are no range"],
  ];
  for (const [change, message] of refused) {
    await assertRejects(() => open({ w: { ...ENTRY, ...change } }), TroodonError, message);
  }
  for (const [field, value] of [["scale", 0.5], ["order", "F"], ["strides", [1, 2]]] as const) {
    const message = `m, tensor "w", ${field}: is `;
    await assertRejects(() => open({ w: { ...ENTRY, [field]: value } }), UnsupportedError, message);
  }
});

Deno.test("metadata are strings and change no tensor", async () => {
  const plain = await open({ w: ENTRY });
  const noted = await open({ __metadata__: { format: "unusual", note: "x" }, w: ENTRY });
  assertEquals(
    [...noted.tensors.values()].map(({ shape, format }) => [shape, format]),
    [
      ...plain.tensors.values(),
    ].map(({ shape, format }) => [shape, format]),
  );
  assertEquals(noted.metadata, new Map([["format", "unusual"], ["note", "x"]]));
  await assertRejects(() => open({ __metadata__: { format: 1 }, w: ENTRY }), FormatError, "string");
});

Deno.test("of an index weight_map counts, and sizes and notes in it change nothing", async () => {
  const shard = writeSafetensors({ w: ENTRY }, VALUES);
  const namesOf = async (index: unknown) => {
    const files: Readonly<Record<string, Uint8Array>> = {
      "x.index.json": new TextEncoder().encode(JSON.stringify(index)),
      "one.safetensors": shard,
      "config.json": new TextEncoder().encode("{}"),
    };
    const file = await openSafetensorsFolder(
      "folder",
      { weights: "x.index.json", open: (name) => memorySource(name, files[name]!) },
    );
    return [...file.tensors.keys()];
  };
  const weight_map = { w: "one.safetensors" };
  assertEquals(await namesOf({ weight_map }), ["w"]);
  assertEquals(await namesOf({ weight_map, metadata: { total_size: 3, note: "x" }, more: 1 }), [
    "w",
  ]);
  await assertRejects(
    () => namesOf({ weight_map: { ...weight_map, v: "one.safetensors" } }),
    FormatError,
    `places tensor "v" in one.safetensors`,
  );
});
