import { assertEquals } from "@std/assert";
import { hostArray, type HostTensor } from "../../ops/host_tensor.ts";
import { fillMask, heldRows } from "./step_sizes.ts";
import type { DecoderPorts } from "./ports.ts";

/** Rows of a mask, one letter a key: `.` is seen. */
function rowsOf({ data, shape }: HostTensor): string[] {
  const [rows, total] = shape as [number, number];
  return Array.from({ length: rows }, (_, row) =>
    Array.from(
      data.subarray(row * total, (row + 1) * total) as Float32Array,
      (code) => code === 0 ? "." : "x",
    ).join(""));
}

Deno.test("a mask hides what is later and what is only padding", () => {
  const cases: [{ rows: number; total: number; pastEnd: number }, string[]][] = [
    [{ rows: 3, total: 3, pastEnd: 0 }, [".xx", "..x", "..."]],
    [{ rows: 1, total: 6, pastEnd: 5 }, ["......"]],
    [{ rows: 1, total: 9, pastEnd: 5 }, [".....xxx."]],
    [{ rows: 2, total: 6, pastEnd: 1 }, [".xxx.x", ".xxx.."]],
  ];
  for (const [sizes, expected] of cases) {
    const shape = [sizes.rows, sizes.total];
    for (const dtype of ["f32", "f16", "bool"] as const) {
      const mask = { dtype, shape, data: hostArray(dtype, { count: sizes.rows * sizes.total }) };
      (mask.data as Uint8Array).fill(7);
      fillMask(mask, sizes);
      assertEquals(rowsOf(mask), expected);
    }
  }
  const mask = { dtype: "f32", shape: [1, 2], data: new Float32Array(2) } as const;
  fillMask(mask, { rows: 1, total: 2, pastEnd: 0 });
  assertEquals([...mask.data], [-65504, 0]);
});

Deno.test("a past is padded to whole blocks only where that can be masked", () => {
  const held = (past: DecoderPorts["past"], length: number, padTo: number) =>
    heldRows({ past } as DecoderPorts, { length, padTo });
  assertEquals([held("masked", 0, 64), held("masked", 1, 64), held("masked", 64, 64)], [0, 64, 64]);
  assertEquals([held("buffered", 65, 128), held("masked", 65, 1)], [128, 65]);
  assertEquals(held("exact", 65, 64), 65);
  // Prompt of 100, 256 steps, blocks of 64: the layout changes four times (spec TL-6).
  const layouts = new Set(Array.from({ length: 257 }, (_, step) => held("masked", 100 + step, 64)));
  assertEquals(layouts.size - 1, 4);
});
