import { assert, assertEquals, assertInstanceOf, assertLess, assertRejects } from "@std/assert";
import { f32Bytes, type TensorSpec, writeGguf } from "../../../tests/support/write_gguf.ts";
import type { ByteSource } from "../../byte_source.ts";
import { FormatError, SourceError, UnsupportedError } from "../../errors.ts";
import { memorySource } from "../../io.ts";
import { openGguf } from "./gguf.ts";
import { stringBytes } from "../string_table.ts";

const TENSOR: TensorSpec = {
  name: "w",
  dims: [4, 2],
  type: 0,
  data: f32Bytes([1, 2, 3, 4, 5, 6, 7, 8]),
};

/** Files by name that find each other, as a folder does; counts what was read and what is open. */
function folderOf(files: Readonly<Record<string, Uint8Array>>) {
  const log = { bytesRead: 0, open: 0 };
  const open = (name: string): ByteSource => {
    const bytes = files[name];
    if (!bytes) throw new SourceError("no such file", { file: name });
    const source = memorySource(name, bytes);
    log.open++;
    return {
      ...source,
      readInto: async (offset, target) => {
        await Promise.resolve(); // like a remote source
        log.bytesRead += target.length;
        source.readInto(offset, target);
      },
      openSibling: open,
      close: () => void log.open--,
    };
  };
  return { open, log };
}

Deno.test("tensors are found wherever the header ends", async () => {
  for (let length = 1; length <= 32; length++) {
    const bytes = writeGguf({ pad: ["string", "x".repeat(length)] }, [TENSOR]);
    const { tensors } = await openGguf(memorySource("m", bytes));
    const { source, offset, byteLength } = tensors.get("w")!;
    const read = new Uint8Array(byteLength);
    await source.readInto(offset, read);
    assertEquals(read, TENSOR.data);
  }
});

Deno.test("GGUF values of all thirteen types are read", async () => {
  const bytes = writeGguf({
    u8: ["u8", 255],
    i8: ["i8", -128],
    u16: ["u16", 65535],
    i16: ["i16", -32768],
    u32: ["u32", 4294967295],
    i32: ["i32", -2147483648],
    f32: ["f32", 0.5],
    bool: ["bool", true],
    string: ["string", "ü€😀"],
    u64: ["u64", 2 ** 53 - 1],
    i64: ["i64", -(2 ** 53 - 1)],
    f64: ["f64", 0.1],
    huge: ["u64", 2n ** 64n - 1n],
    low: ["i64", -(2n ** 63n)],
    edge: ["u64", 2n ** 53n],
    bools: ["array", [true, false], "bool"],
    empty: ["array", [], "string"],
    nested: ["array", [["array", [1, 2], "u16"], ["array", ["x"], "string"]], "array"],
    wide: ["array", [1n, 2n ** 53n], "u64"],
    narrow: ["array", [-1n, 5n], "i64"],
    floats: ["array", [0.5, -1], "f32"],
  });
  const { metadata } = await openGguf(memorySource("m", bytes));
  assertEquals(Object.fromEntries(metadata), {
    u8: 255,
    i8: -128,
    u16: 65535,
    i16: -32768,
    u32: 4294967295,
    i32: -2147483648,
    f32: 0.5,
    bool: true,
    string: "ü€😀",
    u64: 2 ** 53 - 1,
    i64: -(2 ** 53 - 1),
    f64: 0.1,
    huge: 2n ** 64n - 1n,
    low: -(2n ** 63n),
    edge: 2n ** 53n,
    bools: [true, false],
    empty: [],
    nested: [Uint16Array.of(1, 2), ["x"]],
    wide: BigUint64Array.of(1n, 2n ** 53n),
    narrow: Float64Array.of(-1, 5),
    floats: Float32Array.of(0.5, -1),
  });
});

Deno.test("string arrays keep every token: empty, long, marks, zeros, and parts of characters", async () => {
  const tokens = [
    "",
    "a",
    "\ufeff",
    "\0",
    "\0".repeat(9),
    "Ġthe",
    "😀",
    "é".repeat(100),
    "x".repeat(70000),
  ];
  const whole = writeGguf({ t: ["array", tokens, "string"], after: ["u8", 7] });
  const valid = await openGguf(memorySource("m", whole));
  assertEquals(valid.metadata.get("t"), tokens);
  assertEquals(valid.metadata.get("after"), 7);

  const parts = [[0xff], [0x61], [0xe2, 0x96], [0x81], [0xf0, 0x9f, 0x98], [0xed, 0xa0, 0x80], [
    0xc3,
    0xa9,
    0xc3,
  ]]
    .map((list) => Uint8Array.from(list));
  const broken = await openGguf(
    memorySource("m", writeGguf({ t: ["array", [...tokens, ...parts], "string"] })),
  );
  const read = broken.metadata.get("t") as string[];
  assertEquals(read.slice(0, tokens.length), tokens);
  assertEquals(read.slice(tokens.length).map(stringBytes), parts);
  assertEquals(stringBytes("aé😀"), new TextEncoder().encode("aé😀"));
});

Deno.test("two tokens that are a character only together stay two tokens", async () => {
  const halves = [Uint8Array.of(0xc3), Uint8Array.of(0xa9)];
  const bytes = writeGguf({ t: ["array", halves, "string"] });
  const { metadata } = await openGguf(memorySource("m", bytes));
  assertEquals((metadata.get("t") as string[]).map(stringBytes), halves);
});

Deno.test("a header is read by growing ranges and no tensor with it", async () => {
  const tokens = Array.from({ length: 200_000 }, (_, i) => `token number ${i}`);
  const data = new Uint8Array(40 << 20);
  const { open, log } = folderOf({
    "m.gguf": writeGguf({ t: ["array", tokens, "string"] }, [
      { name: "w", dims: [data.length / 4], type: 0, data },
    ]),
  });
  const model = await openGguf(open("m.gguf"));
  assertEquals(model.metadata.get("t"), tokens);
  assertLess(log.bytesRead, 9 << 20);
  model.close();
  assertEquals(log.open, 0);
});

Deno.test("tensor bytes come from the right place in a view that starts inside its buffer", async () => {
  const file = writeGguf({ a: ["u8", 1] }, [{ ...TENSOR, name: "v" }, TENSOR]);
  const larger = new Uint8Array(file.length + 3);
  larger.set(file, 1);
  const model = await openGguf(memorySource("m", larger.subarray(1, 1 + file.length)));
  const tensor = model.tensors.get("w")!;
  assertEquals(tensor.shape, [2, 4]);
  const bytes = new Uint8Array(tensor.byteLength);
  await tensor.source.readInto(tensor.offset, bytes);
  assertEquals(bytes, TENSOR.data);
});

Deno.test("a file cut at any byte is refused with a typed error", async () => {
  const file = writeGguf(
    { s: ["string", "text"], t: ["array", ["a", "bc"], "string"], n: ["array", [1, 2, 3], "u64"] },
    [{ ...TENSOR, name: "v" }, TENSOR],
  );
  for (let length = 0; length < file.length; length++) {
    await assertRejects(() => openGguf(memorySource("cut", file.subarray(0, length))), FormatError);
  }
});

Deno.test("integer tensors open although no kernel computes with them", async () => {
  const tensor = { name: "ids", dims: [3], type: 27, data: new Uint8Array(24) };
  const { tensors } = await openGguf(memorySource("m", writeGguf({}, [tensor])));
  assertEquals(tensors.get("ids")!.format, "I64");
});

function splitModel(count: number, changes: Readonly<Record<string, number>> = {}) {
  const files: Record<string, Uint8Array> = {};
  for (let no = 0; no < count; no++) {
    const name = `m-${String(no + 1).padStart(5, "0")}-of-${String(count).padStart(5, "0")}.gguf`;
    files[name] = writeGguf({
      ...no === 0 ? { "general.architecture": ["string", "llama"] as const } : {},
      "split.no": ["u16", changes[`no${no}`] ?? no],
      "split.count": ["u16", changes[`count${no}`] ?? count],
      "split.tensors.count": ["i32", changes.total ?? count],
    }, [{ ...TENSOR, name: changes.sameName ? "w" : `w${no}` }]);
  }
  return files;
}

const FIRST = "m-00001-of-00003.gguf";

Deno.test("a split model opens through its first part, tensors of all parts in order", async () => {
  const { open, log } = folderOf(splitModel(3));
  const model = await openGguf(open(FIRST));
  assertEquals([...model.tensors.keys()], ["w0", "w1", "w2"]);
  assertEquals(model.tensors.get("w2")!.source.name, "m-00003-of-00003.gguf");
  assertEquals(model.metadata.get("general.architecture"), "llama");
  assertEquals(log.open, 3);
  model.close();
  assertEquals(log.open, 0);
});

Deno.test("missing parts are all named", async () => {
  const { [FIRST]: first } = splitModel(3);
  const { open, log } = folderOf({ [FIRST]: first });
  const source = open(FIRST);
  const error = await assertRejects(() => openGguf(source), SourceError, "2 of 3 parts");
  assert(error.message.includes("m-00002-of-00003.gguf, m-00003-of-00003.gguf"), error.message);
  assertEquals(log.open, 1); // the caller's own
});

Deno.test("parts that do not belong together are refused, and closed again", async () => {
  const cases: [Record<string, number>, string][] = [
    [{ no1: 2 }, "split.no"],
    [{ count2: 4 }, "split.count"],
    [{ total: 4 }, "split.tensors.count"],
    [{ sameName: 1 }, "another part"],
    [{ no0: 1 }, "Open the first part"],
  ];
  for (const [changes, words] of cases) {
    const { open, log } = folderOf(splitModel(3, changes));
    const source = open(FIRST);
    await assertRejects(() => openGguf(source), FormatError, words);
    assertEquals(log.open, 1, words);
  }
});

Deno.test("a split file under a foreign name cannot find its parts and says so", async () => {
  const { [FIRST]: first } = splitModel(3);
  await assertRejects(
    () => openGguf(memorySource("model.gguf", first)),
    SourceError,
    "parts 2 to 3",
  );
  await assertRejects(() => openGguf(memorySource(FIRST, first)), SourceError, "2 of 3 parts");
});

Deno.test("unsupported and damaged are different errors", async () => {
  const unknown = writeGguf({}, [{ ...TENSOR, type: 9999 }]);
  await assertRejects(() => openGguf(memorySource("m", unknown)), UnsupportedError, "9999");
  const error = await assertRejects(
    () => openGguf(memorySource("m", writeGguf({}, [TENSOR, TENSOR]))),
    FormatError,
    "two tensors have this name",
  );
  assertInstanceOf(error, FormatError);
  assertEquals(error.file, "m");
});

Deno.test("a tensor whose rows are no whole blocks is refused by name", async () => {
  const tensor = { name: "w", dims: [100, 2], type: 12, data: new Uint8Array(288) };
  await assertRejects(
    async () => await openGguf(memorySource("m", writeGguf({}, [tensor]))),
    FormatError,
    "rows of 100 values are not whole Q4_K blocks of 256",
  );
});
