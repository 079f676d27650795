import { assertEquals, assertRejects } from "@std/assert";
import { f32Bytes, writeGguf } from "../../tests/support/write_gguf.ts";
import { FormatError } from "../errors.ts";
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

function gguf(dims: readonly number[], values: readonly number[]): Uint8Array {
  return writeGguf({ "general.type": ["string", "imatrix"] }, [
    { name: `${NAME}.in_sum2`, dims, type: 0, data: f32Bytes([...values]) },
    { name: `${NAME}.counts`, dims: [1], type: 0, data: f32Bytes([512]) },
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
