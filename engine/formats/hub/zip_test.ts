import { assertEquals, assertRejects } from "@std/assert";
import { writeZip, type ZipFile } from "../../../tests/support/write_zip.ts";
import { FormatError, UnsupportedError } from "../../errors.ts";
import { memorySource } from "../../io.ts";
import { readZipDirectory, readZipEntry } from "./zip.ts";

const TEXT = new TextEncoder().encode("a model ".repeat(100_000));

async function extract(archive: Uint8Array, name: string): Promise<Uint8Array> {
  const source = memorySource("a.zip", archive);
  const entry = (await readZipDirectory(source)).get(name)!;
  const chunks: Uint8Array[] = [];
  for await (const chunk of readZipEntry(source, entry)) chunks.push(chunk.slice());
  return new Uint8Array(await new Blob(chunks as Uint8Array<ArrayBuffer>[]).arrayBuffer());
}

Deno.test("stored and deflated files come out whole, with zip64 fields and a comment, too", async () => {
  const files: ZipFile[] = [
    { name: "x/empty", data: new Uint8Array(0), stored: true },
    { name: "x/deflated", data: TEXT },
    { name: "x/stored", data: TEXT, stored: true },
    { name: "x/é", data: TEXT.subarray(0, 5) },
  ];
  for (const options of [{}, { comment: "PK\x05\x06 not the end" }, { zip64: true }]) {
    const archive = writeZip(files, options);
    for (const { name, data } of files) assertEquals(await extract(archive, name), data);
  }
});

Deno.test("entries that lie about length, CRC, place or name are refused while they stream", async () => {
  const lies: [Partial<ZipFile>, string][] = [
    [{ claim: { bytes: TEXT.length - 1 } }, "longer than"],
    [{ claim: { bytes: TEXT.length + 1 } }, "claims"],
    [{ claim: { crc: 1 } }, "CRC-32"],
    [{ claim: { packed: 100 } }, ""],
    [{ claim: { packed: 1e9 } }, "past the end"],
    [{ claim: { offset: 1e9 } }, ""],
    [{ claim: { offset: 5 } }, "local header"],
    [{ name: "../x" }, "leaves"],
    [{ name: "/x" }, "leaves"],
    [{ name: "C:\\x" }, "leaves"],
    [{ name: "a/../../x" }, "leaves"],
  ];
  for (const [lie, words] of lies) {
    const file = { name: "x", data: TEXT, ...lie };
    await assertRejects(() => extract(writeZip([file]), file.name), FormatError, words);
  }
});

Deno.test("a bomb is stopped at the length it claims", async () => {
  const bomb = writeZip([{ name: "x", data: new Uint8Array(64 << 20), claim: { bytes: 1000 } }]);
  const source = memorySource("a.zip", bomb);
  const entry = (await readZipDirectory(source)).get("x")!;
  let bytes = 0;
  await assertRejects(
    async () => {
      for await (const chunk of readZipEntry(source, entry)) bytes += chunk.length;
    },
    FormatError,
    "longer than the 1000 bytes",
  );
  assertEquals(bytes, 0);
});

Deno.test("encrypted entries and other methods are unsupported, not damaged", async () => {
  for (const claim of [{ flags: 1 }, { method: 12 }]) {
    const archive = writeZip([{ name: "x", data: TEXT, claim }]);
    await assertRejects(() => extract(archive, "x"), UnsupportedError);
  }
});

Deno.test("what is not a zip archive, or half of one, is refused", async () => {
  const archive = writeZip([{ name: "x", data: TEXT }, { name: "y", data: TEXT }]);
  for (const length of [0, 10, 21, archive.length - 1, archive.length >> 1]) {
    const source = memorySource("a.zip", archive.subarray(0, length));
    await assertRejects(() => readZipDirectory(source), FormatError);
  }
  const twice = memorySource(
    "a.zip",
    writeZip([{ name: "x", data: TEXT }, { name: "x", data: TEXT }]),
  );
  await assertRejects(() => readZipDirectory(twice), FormatError, "two entries");
});
