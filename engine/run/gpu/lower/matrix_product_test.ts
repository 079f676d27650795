import { assertEquals } from "@std/assert";
import type { GpuSlice, GpuWeight } from "../../../../gpu/kernel.ts";
import type { GpuDispatch, GpuLowering } from "../kernel.ts";
import { halfSides } from "./matrix_product.ts";

Deno.test("lines of a large weight are made halves some at a time, each where its part has them", () => {
  const slice = (bytes: number) => ({ bytes }) as GpuSlice;
  const columns = 2 ** 20, planes = [slice(0)], emitted: GpuDispatch[] = [], scratch: number[] = [];
  const weight: GpuWeight = {
    ...{ layout: "f16", format: "F16", rows: 100, columns },
    parts: [{ firstRow: 0, rows: 70, planes }, { firstRow: 70, rows: 30, planes }],
  };
  const lowering = {
    node: { inputs: [{ shape: [40, columns] }] },
    emit: (dispatch: GpuDispatch) => emitted.push(dispatch),
    most: (dim: number) => dim,
    slice: () => slice(0),
    scratch(bytes: number) {
      scratch.push(bytes);
      return slice(bytes);
    },
  } as unknown as GpuLowering;
  const sides = halfSides(lowering, { weight, wanted: 1 });
  assertEquals(sides.map(({ first, lines }) => [first, lines]), [[0, 32], [32, 32], [64, 6], [
    70,
    30,
  ]]);
  assertEquals(scratch, [2 * 2 * 40 * columns, 4 * 40, 2 * 32 * columns]);
  for (const { bring } of sides) bring();
  const [rows, ...lines] = emitted, units = columns / 8;
  assertEquals(rows!.workgroups, [40]);
  assertEquals(
    lines.map(({ uniforms }) => [uniforms!.first, uniforms!.count]),
    [[0, 32 * units], [32 * units, 32 * units], [64 * units, 6 * units], [0, 30 * units]],
  );
});
