import { assertEquals } from "@std/assert";
import { ops } from "../engine/ops/mod.ts";
import { BINARY, BINARY_NAMES, BINARY_NUMBERS } from "./binary.ts";
import { FIRST_TEST } from "./record.ts";
import { ACTIVATION_NAMES, EPILOGUE_NAMES, UNARY, UNARY_NAMES, UNARY_NUMBERS } from "./unary.ts";

/** What stands in a list more than once. */
function repeated<T>(list: readonly T[]): T[] {
  return list.filter((item, at) => list.indexOf(item) !== at);
}

Deno.test("no function has the name of another, or of an op, so that passes may call nodes by it", () => {
  assertEquals(repeated([...UNARY_NAMES, ...BINARY_NAMES, ...ops.keys()]), []);
});

Deno.test("no word of configs and no ONNX operator means two functions", () => {
  const records = [...Object.values(UNARY), ...Object.values(BINARY)];
  assertEquals(repeated(Object.values(UNARY).flatMap(({ words = [] }) => words)), []);
  assertEquals(repeated(records.flatMap(({ onnx }) => onnx ? [onnx[0]] : [])), []);
});

Deno.test("what gates and convolutions apply has a form for every device", () => {
  const names = [...ACTIVATION_NAMES, ...EPILOGUE_NAMES].filter((name) => name !== "none");
  const lacking = names.filter((name) => {
    const { float, simd, wgsl } = UNARY[name];
    return !float || !simd || !wgsl;
  });
  assertEquals(lacking, []);
});

Deno.test("numbers in instructions tell functions apart, and tests from others", () => {
  for (const [table, numbers] of [[UNARY, UNARY_NUMBERS], [BINARY, BINARY_NUMBERS]] as const) {
    assertEquals(repeated(Object.values<number>(numbers)), []);
    for (const [name, { test = false }] of Object.entries(table)) {
      assertEquals((numbers as Record<string, number>)[name]! >= FIRST_TEST, test, name);
    }
  }
});
