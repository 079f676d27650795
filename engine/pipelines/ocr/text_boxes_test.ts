import { assertEquals } from "@std/assert";
import { textBoxes } from "./text_boxes.ts";

const WIDTH = 100, HEIGHT = 60;

function map(
  ...bars:
    readonly (readonly [x: number, y: number, width: number, height: number, value: number])[]
) {
  const data = new Float32Array(WIDTH * HEIGHT);
  for (const [x, y, width, height, value] of bars) {
    for (let row = y; row < y + height; row++) {
      data.fill(value, row * WIDTH + x, row * WIDTH + x + width);
    }
  }
  return { width: WIDTH, height: HEIGHT, data };
}

Deno.test("a bar becomes a box that is larger by area over outline, in the picture's pixels", () => {
  // Dilated to 41 × 11, sides between pixel centres 40 and 10: it grows by 40·10·1.6/100 = 6.4.
  const bar = map([20, 20, 40, 10, 0.9]);
  assertEquals(textBoxes(bar, { width: WIDTH, height: HEIGHT }), [
    [[14, 14], [66, 14], [66, 36], [14, 36]],
  ]);
  assertEquals(textBoxes(bar, { width: 2 * WIDTH, height: HEIGHT }), [
    [[28, 14], [132, 14], [132, 36], [28, 36]],
  ]);
});

Deno.test("boxes that are small, weak or below the threshold are dropped", () => {
  const size = { width: WIDTH, height: HEIGHT };
  assertEquals(textBoxes(map([20, 20, 40, 2, 0.9]), size), []);
  assertEquals(textBoxes(map([20, 20, 40, 10, 0.4]), size), []);
  assertEquals(textBoxes(map([20, 20, 40, 10, 0.2]), size), []);
});

Deno.test("boxes of one row go from the left to the right", () => {
  const two = map([60, 18, 25, 8, 0.9], [10, 22, 25, 8, 0.9], [10, 45, 25, 8, 0.9]);
  const tops = textBoxes(two, { width: WIDTH, height: HEIGHT }).map(([[x]]) => x < 30);
  assertEquals(tops, [true, false, true]);
});
