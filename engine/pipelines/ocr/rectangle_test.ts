import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { random } from "../../../tests/support/weights.ts";
import {
  convexHull,
  type Corners,
  isInside,
  measure,
  type Point,
  smallestRectangle,
} from "./rectangle.ts";

Deno.test("the hull leaves out what lies inside or on an edge", () => {
  const square: Point[] = [[0, 0], [4, 0], [4, 4], [0, 4], [2, 2], [2, 0], [0, 0]];
  assertEquals(convexHull(square).length, 4);
  assertEquals(convexHull([[3, 5]]), [[3, 5]]);
});

Deno.test("the smallest rectangle is found at every angle", () => {
  for (let angle = -1.5; angle <= 1.5; angle += 0.1) {
    const cos = Math.cos(angle), sin = Math.sin(angle);
    const turned = (
      x: number,
      y: number,
    ): Point => [50 + x * cos - y * sin, 40 + x * sin + y * cos];
    const points = [turned(0, 0), turned(20, 0), turned(20, 6), turned(0, 6), turned(7, 3)];
    const { corners, shortSide } = smallestRectangle(points);
    assertAlmostEquals(shortSide, 6, 1e-9);
    assertAlmostEquals(measure(corners).area, 120, 1e-9);
    assertAlmostEquals(measure(corners).length, 52, 1e-9);
  }
});

Deno.test("no rectangle of any angle around any points is smaller", () => {
  const next = random(5);
  for (let round = 0; round < 20; round++) {
    const points = Array.from({ length: 3 + round % 5 }, (): Point => [30 * next(), 20 * next()]);
    let least = Infinity;
    for (let angle = 0; angle < Math.PI; angle += 0.001) {
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
      const along = points.map(([x, y]) => x * cos + y * sin);
      const across = points.map(([x, y]) => y * cos - x * sin);
      const spread = (values: readonly number[]) => Math.max(...values) - Math.min(...values);
      least = Math.min(least, spread(along) * spread(across));
    }
    const { area } = measure(smallestRectangle(points).corners);
    assert(area <= least + 1e-9 && area >= 0.95 * least, `${area}, ${least} at some angle`);
  }
});

Deno.test("corners go from the top left one with the clock", () => {
  const { corners } = smallestRectangle([[9, 1], [1, 1], [1, 5], [9, 5]]);
  assertEquals(corners, [[1, 1], [9, 1], [9, 5], [1, 5]]);
  assertEquals(isInside([1, 1], corners), true);
  assertEquals(isInside([5, 6], corners), false);
  const line: Corners = smallestRectangle([[2, 2], [6, 2]]).corners;
  assertEquals(measure(line), { area: 0, length: 8 });
});
