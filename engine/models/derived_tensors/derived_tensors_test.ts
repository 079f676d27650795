import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { getFormat } from "../../../quant/mod.ts";
import { FormatError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { tensorInMemory } from "../../run/case_graph.ts";
import { joinMxfp4 } from "./mxfp4.ts";
import { padTensor } from "./pad.ts";
import { inverseRowLengths } from "./row_norms.ts";
import { sliceTensor } from "../../formats/tensor_slice.ts";
import { signedBytes } from "./signed_bytes.ts";
import { stackTensors } from "./stack.ts";
import { transposeTensor } from "./transpose.ts";

/** A tensor whose numbers count up from `start`. */
function counting(shape: readonly number[], start = 0, name = "w"): TensorInfo {
  const values = Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => start + i);
  return tensorInMemory(name, { format: "F32", shape, bytes: new Uint8Array(values.buffer) });
}

/** All numbers of a tensor, read in pieces of a size that fits nothing. */
async function numbers({ source, offset, byteLength }: TensorInfo, piece = 7): Promise<number[]> {
  const bytes = new Uint8Array(byteLength);
  for (let at = 0; at < byteLength; at += piece) {
    await source.readInto(offset + at, bytes.subarray(at, Math.min(byteLength, at + piece)));
  }
  return [...new Float32Array(bytes.buffer)];
}

Deno.test("a part takes the same entries of every group", async () => {
  const part = sliceTensor(counting([6, 2]), { axis: 0, start: 1, count: 1, groups: 2, stride: 3 });
  assertEquals(part.shape, [2, 2]);
  assertEquals(await numbers(part), [2, 3, 8, 9]);
});

Deno.test("a part along an inner axis is taken of every outer entry", async () => {
  const part = sliceTensor(counting([2, 4]), { axis: 1, start: 1, count: 1, groups: 2, stride: 2 });
  assertEquals(part.shape, [2, 2]);
  assertEquals(await numbers(part), [1, 3, 5, 7]);
});

Deno.test("rows of a block format are cut without decoding them", async () => {
  const format = getFormat("Q8_0");
  const bytes = Uint8Array.from({ length: 4 * format.blockBytes }, (_, i) => i);
  const whole = tensorInMemory("w", { format: "Q8_0", shape: [4, format.blockSize], bytes });
  const part = sliceTensor(whole, { axis: 0, start: 2, count: 2, groups: 1, stride: 4 });
  const read = new Uint8Array(part.byteLength);
  await part.source.readInto(0, read);
  assertEquals(read, bytes.subarray(2 * format.blockBytes));
});

Deno.test("groups that do not fill the axis, and pieces of blocks, are refused by name", () => {
  const wrong = assertThrows(
    () => sliceTensor(counting([5, 2]), { axis: 0, start: 0, count: 1, groups: 2, stride: 2 }),
    FormatError,
  );
  assertMatch(wrong.message, /tensor w: has shape \[5,2\] where axis 0 must be 2 times 2/);
  const blocks = tensorInMemory("w", { format: "Q8_0", shape: [1, 64], bytes: new Uint8Array(68) });
  assertThrows(
    () => sliceTensor(blocks, { axis: 1, start: 0, count: 8, groups: 1, stride: 64 }),
    FormatError,
  );
});

Deno.test("a stack is its tensors one behind the other, and they must be alike", async () => {
  const stack = stackTensors([counting([1, 2]), counting([1, 2], 10), counting([1, 2], 20)]);
  assertEquals(stack.shape, [3, 1, 2]);
  assertEquals(await numbers(stack), [0, 1, 10, 11, 20, 21]);
  assertThrows(() => stackTensors([counting([1, 2]), counting([2, 1])]), FormatError);
});

Deno.test("a transposed tensor exchanges its last axes, whatever is read of it", async () => {
  const turned = transposeTensor(counting([2, 2, 3]));
  assertEquals(turned.shape, [2, 3, 2]);
  const expected = [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11];
  assertEquals(await numbers(turned), expected);
  assertEquals(await numbers(turned, 1000), expected);
  const blocks = tensorInMemory("w", { format: "Q8_0", shape: [1, 32], bytes: new Uint8Array(34) });
  assertThrows(() => transposeTensor(blocks), FormatError);
});

Deno.test("views of views read through, and have names of their own", async () => {
  const whole = counting([4, 2], 0, "fused");
  const first = sliceTensor(transposeTensor(whole), {
    ...{ axis: 0, start: 0, count: 1, groups: 1, stride: 2 },
  });
  const second = sliceTensor(transposeTensor(whole), {
    ...{ axis: 0, start: 1, count: 1, groups: 1, stride: 2 },
  });
  assertEquals([await numbers(first), await numbers(second)], [[0, 2, 4, 6], [1, 3, 5, 7]]);
  assertEquals(new Set([first, second, whole].map(({ source }) => source.name)).size, 3);
});

Deno.test("inverse row lengths are those of the numbers that a format stands for", async () => {
  const matrix = tensorInMemory(
    "w",
    { format: "F32", shape: [2, 2], bytes: new Uint8Array(Float32Array.of(3, 4, 0, 0).buffer) },
  );
  const lengths = inverseRowLengths(matrix);
  assertEquals(lengths.shape, [2]);
  assertEquals(await numbers(lengths), [0.2, 1e12].map(Math.fround));
});

Deno.test("zeros stand behind an axis, and block formats are refused", async () => {
  const outer = padTensor(counting([2, 3], 1), { axis: 0, size: 4 });
  assertEquals([outer.shape, await numbers(outer)], [[4, 3], [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0]]);
  const inner = padTensor(counting([2, 3], 1), { axis: 1, size: 5 });
  assertEquals([inner.shape, await numbers(inner)], [[2, 5], [1, 2, 3, 0, 0, 4, 5, 6, 0, 0]]);
  const same = counting([2, 3]);
  assertEquals(padTensor(same, { axis: 1, size: 3 }), same);
  const blocks = tensorInMemory("w", { format: "Q8_0", shape: [2, 32], bytes: new Uint8Array(68) });
  assertThrows(() => padTensor(blocks, { axis: 0, size: 8 }), FormatError, "cannot be padded");
});

Deno.test("codes and exponents are one tensor of MXFP4, read in pieces of any size", async () => {
  const blocks = 3;
  const codes = Uint8Array.from({ length: 16 * blocks }, (_, i) => (37 * i + 11) % 256);
  const exponents = Uint8Array.of(127, 126, 130);
  const joined = joinMxfp4(
    tensorInMemory("codes", { format: "U8", shape: [1, blocks, 16], bytes: codes }),
    tensorInMemory("exponents", { format: "U8", shape: [1, blocks], bytes: exponents }),
  );
  assertEquals([joined.shape, joined.format, joined.byteLength], [[1, 96], "MXFP4", 51]);
  const table = [0, 0.5, 1, 1.5, 2, 3, 4, 6];
  const expected = Array.from({ length: 96 }, (_, i) => {
    const code = codes[i >> 1]! >> 4 * (i & 1) & 15;
    return (code & 8 ? -1 : 1) * table[code & 7]! * 2 ** (exponents[i >> 5]! - 127);
  });
  for (const piece of [1, 7, 17, 40, 51]) {
    const bytes = new Uint8Array(51);
    for (let at = 0; at < 51; at += piece) {
      await joined.source.readInto(at, bytes.subarray(at, Math.min(51, at + piece)));
    }
    const values = new Float32Array(96);
    getFormat("MXFP4").decode(bytes, values);
    assertEquals([...values].map((value) => value + 0), expected.map((value) => value + 0));
  }
});

Deno.test("a matrix of floats is encoded as signed bytes while it is read", async () => {
  const from = counting([300, 64], -9000), bytes = signedBytes(from)!, format = getFormat("Q8_0");
  const read = new Uint8Array(bytes.byteLength), values = new Float32Array(300 * 64);
  const whole = new Uint8Array(bytes.byteLength);
  // Pieces that end within rows and blocks.
  for (let at = 0; at < read.length; at += 1001) {
    await bytes.source.readInto(at, read.subarray(at, Math.min(read.length, at + 1001)));
  }
  values.set(values.map((_, i) => i - 9000));
  format.encode!(values, whole);
  assertEquals(read, whole);
  assertEquals([bytes.format, bytes.shape], ["Q8_0", [300, 64]]);
  assertEquals(signedBytes(counting([3, 40])), undefined);
});
