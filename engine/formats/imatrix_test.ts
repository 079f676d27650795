import { assertEquals, assertRejects } from "@std/assert";
import { f32Bytes, type Typed, writeGguf } from "../../tests/support/write_gguf.ts";
import { FormatError, UnsupportedError } from "../errors.ts";
import { memorySource } from "../io.ts";
import { readImatrix } from "./imatrix.ts";

const NAME = "blk.0.ffn_up.weight";
const VALUES = [4, 0, 2.5, 1];

function dat(entries: readonly (readonly [string, readonly number[]])[]): Uint8Array {
  const int = (value: number) => [...new Uint8Array(Int32Array.of(value).buffer)];
  const bytes = entries.flatMap(([name, values]) => [
    ...int(name.length),
    ...new TextEncoder().encode(name),
    ...[...int(7), ...int(values.length)],
    ...new Uint8Array(Float32Array.from(values).buffer),
  ]);
  // What follows, the text's name, is nobody's business here.
  return Uint8Array.from([...int(entries.length), ...bytes, ...int(3)]);
}

function gguf(
  dims: readonly number[],
  values: readonly number[],
  keys: Readonly<Record<string, Typed>> = {},
  more = ".counts",
): Uint8Array {
  return writeGguf({ "general.type": ["string", "imatrix"], ...keys }, [
    { name: `${NAME}.in_sum2`, dims, type: 0, data: f32Bytes([...values]) },
    { name: `${NAME}${more}`, dims: [1], type: 0, data: f32Bytes([512]) },
  ]);
}

const read = (bytes: Uint8Array) => readImatrix(memorySource("imatrix", bytes));

Deno.test("both containers of an importance matrix give the same columns", async () => {
  for (const bytes of [dat([[NAME, VALUES]]), gguf([4], VALUES), gguf([4, 1], VALUES)]) {
    assertEquals(await read(bytes), new Map([[NAME, Float32Array.from(VALUES)]]));
  }
});

Deno.test("importance matrices that are broken, of experts alone, or none at all are refused", async () => {
  const whole = dat([[NAME, VALUES]]);
  const cases: readonly (readonly [Uint8Array, string])[] = [
    [whole.subarray(0, 20), "bytes at byte"],
    [whole.subarray(0, -9), `entry "${NAME}": asks for 16 bytes`],
    [new Uint8Array(16), "begins with 0 entries"],
    [new Uint8Array(16).fill(0xff), "begins with -1 entries"],
    [dat([[NAME, [1, -2]]]), "importance of column 1 is -2"],
    [dat([[NAME, [1, NaN]]]), "importance of column 1 is NaN"],
    [dat([[NAME, [1, 1, Infinity]]]), `entry "${NAME}": the importance of column 2 is Infinity`],
    [dat([["a", [1]], [NAME, [1e38, 1]]]), `entry "${NAME}": the importance of column 0 is 9.99`],
    [gguf([4], [1, 2, 3, 1e20]), `entry "${NAME}": the importance of column 3 is 10000000`],
    [gguf([2, 2], VALUES), "holds no importance"],
  ];
  for (const [bytes, message] of cases) {
    await assertRejects(() => read(bytes), FormatError, message);
  }
});

Deno.test("keys and tensors of an importance matrix are harmless, or refused by name", async () => {
  const values = new Map([[NAME, Float32Array.from(VALUES)]]);
  const harmless: readonly (readonly [string, Typed])[] = [
    ["imatrix.datasets", ["array", ["a.txt", "b.txt"], "string"]],
    ["imatrix.chunk_count", ["u32", 77]],
    ["imatrix.chunk_size", ["u32", 77]],
    ["general.name", ["string", "unusual"]],
  ];
  for (const [key, value] of harmless) {
    assertEquals(await read(gguf([4], VALUES, { [key]: value })), values, key);
  }
  for (
    const [key, value] of [
      ["general.type", "model"],
      ["imatrix.brand_new", "x"],
      ["brand_new", "x"],
    ] as const
  ) {
    await assertRejects(
      () => read(gguf([4], VALUES, { [key]: ["string", value] })),
      UnsupportedError,
      `imatrix, metadata, ${key}: is `,
    );
  }
  assertEquals(await read(gguf([4], VALUES, {}, ".in_sum")), values);
  await assertRejects(
    () => read(gguf([4], VALUES, {}, ".unusual")),
    FormatError,
    "does not end with",
  );
});

Deno.test("of the older container calls are a factor, and lengths are held against the file", async () => {
  const whole = dat([[NAME, VALUES]]);
  const at = (place: number, value: number) => {
    const bytes = whole.slice();
    new DataView(bytes.buffer).setInt32(place, value, true);
    return read(bytes);
  };
  const calls = 8 + NAME.length;
  assertEquals(await at(calls, 1000), await read(whole));
  for (const [place, value] of [[0, 2], [4, 1000], [calls + 4, 1000]] as const) {
    await assertRejects(() => at(place, value), FormatError, "bytes at byte");
  }
  assertEquals((await at(calls + 4, 3)).get(NAME)?.length, 3, "what uses it compares lengths");
});
