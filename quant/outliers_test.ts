import { assert, assertEquals, assertLess } from "@std/assert";
import fc from "fast-check";
import { normals } from "../tests/support/normals.ts";
import { formatBytes, getFormat } from "./mod.ts";
import { addSparseRows, createOutlierTaker, searchOutliers } from "./outliers.ts";

function limitOf(values: Float32Array, wanted: number) {
  const search = searchOutliers(wanted);
  for (const look of [search.count, search.refine]) {
    // In two runs, as a file is read.
    look(values.subarray(0, 8));
    look(values.subarray(8));
  }
  return search.limit();
}

const shortList = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), {
  minLength: 16,
  maxLength: 16,
});
const withTies = fc.array(fc.constantFrom(0, -0, 1, -1, 2, 1e-40), {
  minLength: 16,
  maxLength: 16,
});

Deno.test("the outliers are the values of greatest magnitude, exactly as many as wanted", () => {
  fc.assert(
    fc.property(fc.oneof(shortList, withTies), fc.integer({ min: 1, max: 16 }), (list, count) => {
      const values = Float32Array.from(list);
      const { take, taken } = createOutlierTaker(limitOf(values, count), {
        ...{ rows: 4, columns: 4, count },
      });
      const rest = values.slice();
      take(rest.subarray(0, 8));
      take(rest.subarray(8));
      assertEquals(taken.starts.at(-1), count);
      const byMagnitude = Array.from(values, Math.abs).sort((a, b) => b - a);
      assertEquals(
        Array.from(taken.values, Math.abs).sort((a, b) => b - a),
        byMagnitude.slice(0, count),
      );
      for (let row = 0; row < 4; row++) {
        for (let e = taken.starts[row]!; e < taken.starts[row + 1]!; e++) {
          assert(Object.is(rest[row * 4 + taken.columns[e]!], 0));
          assertEquals(values[row * 4 + taken.columns[e]!], taken.values[e]);
        }
      }
      addSparseRows(rest.subarray(0, 8), 4, taken, 0);
      addSparseRows(rest.subarray(8), 4, taken, 2);
      rest.forEach((value, i) => assertEquals(value + 0, values[i]! + 0));
    }),
    { seed: 11, numRuns: 300 },
  );
});

Deno.test("a thousandth of outliers makes the mean error of heavy-tailed weights smaller", () => {
  // Student's t with 3 degrees of freedom.
  const [count, columns] = [1 << 15, 256];
  const [z, a, b, c] = [1, 2, 3, 4].map((seed) => normals(count, seed));
  const values = z!.map((v, i) => v / Math.sqrt((a![i]! ** 2 + b![i]! ** 2 + c![i]! ** 2) / 3));
  for (const name of ["Q8_0", "Q4_B32T1A", "Q4_B64T1", "Q3H_B64T1", "E0M4_G128", "I4PC_256"]) {
    const format = getFormat(name);
    const meanError = (share: number): number => {
      const rest = values.slice();
      const wanted = Math.floor(share * count);
      const limit = wanted > 0 ? limitOf(values, wanted) : { magnitude: Infinity, ties: 0 };
      const { take, taken } = createOutlierTaker(limit, {
        ...{ rows: count / columns, columns, count: wanted },
      });
      take(rest);
      const bytes = new Uint8Array(formatBytes(format, count));
      format.encode!(rest, bytes);
      const decoded = new Float32Array(count);
      format.decode(bytes, decoded);
      addSparseRows(decoded, columns, taken, 0);
      return decoded.reduce((sum, value, i) => sum + Math.abs(value - values[i]!), 0) / count;
    };
    assertLess(meanError(0.001), 0.99 * meanError(0), name);
  }
});
