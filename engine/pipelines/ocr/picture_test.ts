import { assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import type { Picture } from "../../formats/media/picture.ts";
import { cropBox } from "./crop.ts";
import { decodeCtc } from "./ctc.ts";
import { padRows, resizeLinear, roundEven, turnAround, turnLeft, writePlanes } from "./picture.ts";

function grey(width: number, height: number, at: (x: number, y: number) => number): Picture {
  const data = new Uint8Array(3 * width * height);
  for (let i = 0; i < data.length; i++) {
    const pixel = Math.floor(i / 3);
    data[i] = at(pixel % width, Math.floor(pixel / width));
  }
  return { width, height, data };
}

const reds = ({ data }: Picture) => [...data].filter((_, i) => i % 3 === 0);

Deno.test("resizing takes samples at the centres of pixels", () => {
  const row = grey(4, 1, (x) => [0, 40, 80, 120][x]!);
  assertEquals(reds(resizeLinear(row, { width: 2, height: 1 })), [20, 100]);
  assertEquals(reds(resizeLinear(row, { width: 8, height: 1 })), [
    0,
    10,
    30,
    50,
    70,
    90,
    110,
    120,
  ]);
  assertEquals(resizeLinear(row, { width: 4, height: 1 }), row);
});

Deno.test("pictures turn and get rows", () => {
  const six = grey(3, 2, (x, y) => 3 * y + x);
  assertEquals(reds(turnAround(six)), [5, 4, 3, 2, 1, 0]);
  assertEquals(reds(turnLeft(six)), [2, 5, 1, 4, 0, 3]);
  assertEquals(reds(padRows(grey(2, 1, () => 9), 1)), [0, 0, 9, 9, 0, 0]);
});

Deno.test("planes are blue, green, red from -1 to 1, as far apart as asked", () => {
  const planes = new Float32Array(9).fill(7);
  writePlanes({ width: 1, height: 1, data: Uint8Array.of(255, 51, 0) }, {
    target: planes,
    stride: 3,
  });
  assertEquals([planes[0], planes[1], planes[6]], [-1, 7, 1]);
  assertAlmostEquals(planes[3]!, -0.6, 1e-6);
});

Deno.test("halves go to even numbers", () => {
  assertEquals([0.5, 1.5, 2.5, 2.4, 2.6].map(roundEven), [0, 2, 2, 2, 3]);
});

Deno.test("a box is cut out of a slope as it lies, and turned with its corners", () => {
  const slope = grey(40, 40, (x, y) => 2 * x + 3 * y);
  const straight = cropBox(slope, [[5, 6], [15, 6], [15, 10], [5, 10]]);
  assertEquals([straight.width, straight.height], [10, 4]);
  assertEquals(reds(straight).slice(0, 2), [28, 30]);
  assertEquals(reds(straight)[10], 31);
  const turned = cropBox(slope, [[15, 10], [5, 10], [5, 6], [15, 6]]);
  assertEquals(reds(turned)[0], 60);
});

Deno.test("letters are merged where they repeat without a blank between", () => {
  const columns = [1, 1, 0, 1, 2, 2].flatMap((best) =>
    [0, 1, 2].map((i) => i === best ? 0.8 : 0.1)
  );
  const { text, score } = decodeCtc(Float32Array.from(columns), ["", "a", "b"]);
  assertEquals(text, "aab");
  assertAlmostEquals(score, 0.8, 1e-6);
  assertEquals(decodeCtc(Float32Array.of(1, 0, 0), ["", "a", "b"]), { text: "", score: 0 });
  assertThrows(() => decodeCtc(new Float32Array(4), ["", "a", "b"]), RangeError, "3 letters");
});
