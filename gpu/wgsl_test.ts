import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import type { Shader } from "./kernel.ts";
import { float, shaderText, wgsl } from "./wgsl.ts";

Deno.test("wgsl`` keeps the shape of nested text and drops common indentation", () => {
  const inner = wgsl`
    let a = ${1}u;
      let b = a;
  `;
  assertEquals(
    wgsl`
      fn f() {
        ${inner}
        ${["x();", "y();"]}
      }
    `,
    "fn f() {\n  let a = 1u;\n    let b = a;\n  x();\n  y();\n}",
  );
});

Deno.test("wgsl`` refuses numbers that are no integers", () => {
  assertThrows(() => wgsl`${0.5}`, RangeError, "0.5");
});

Deno.test("float() gives literals that read back as the same float32", () => {
  assertEquals(
    [0, 1, -2, 0.5, 1e-5, 1e20].map(float).every((text) => /^[-\d.e+]+f$/.test(text)),
    true,
  );
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) => {
      const text = float(value);
      assertEquals(Math.fround(Number(text.slice(0, -1))), value);
    }),
    { seed: 5, numRuns: 500 },
  );
  assertThrows(() => float(Infinity), RangeError);
  assertThrows(() => float(1e39), RangeError);
});

/** A number of WGSL: its digits, and the letter of its type. */
const LITERAL =
  /(?<![\w.])(0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([fhui]?)(?![\w.])/g;

const shader: Shader = {
  name: "twice",
  storage: { x: "array<f32>", y: "array<f32>" },
  writes: ["y"],
  uniforms: { count: "u32", factor: "f32" },
  enables: ["f16", "subgroups"],
  code: wgsl`
    @compute @workgroup_size(64)
    fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
      let i = flat_workgroup(id, count);
      if (i < params.count) { y[i] = x[i] * params.factor; }
    }
  `,
};

const READ = { access: "read" } as const;
const MEMORY = { x: READ, y: { access: "either" } } as const;

Deno.test("shaderText() declares bindings in order, as their memory demands", () => {
  const text = shaderText(shader, MEMORY);
  assertEquals(text.split("\n").slice(0, 8), [
    "enable f16;",
    "struct Params {",
    "  count: u32,",
    "  factor: f32,",
    "}",
    "@group(0) @binding(0) var<storage, read> x: array<f32>;",
    "@group(0) @binding(1) var<storage, read_write> y: array<f32>;",
    "@group(0) @binding(2) var<uniform> params: Params;",
  ]);
  const dawn = shaderText(shader, MEMORY, { subgroupsNeedEnable: true });
  assertEquals(dawn.split("\n")[1], "enable subgroups;");
});

Deno.test("shaderText() refuses to write into memory that is for reading", () => {
  assertThrows(() => shaderText(shader, { x: READ, y: READ }), TypeError, "it writes y");
  assertThrows(() => shaderText(shader, { x: READ }), TypeError, "nothing was given for y");
});

Deno.test("no shader has an infinite literal, or one beyond its type", () => {
  const most: Readonly<Record<string, number>> = { f: 3.4028234663852886e38, h: 65504, u: 2 ** 32 };
  for (const name of ["kernels", "product_kernels"]) {
    const text = Deno.readTextFileSync(new URL(`${name}.snapshot.txt`, import.meta.url));
    let literals = 0;
    for (const [literal, number, suffix] of text.matchAll(LITERAL)) {
      literals++;
      assert(Number(number) <= (most[suffix!] ?? 3.4028234663852886e38), literal);
    }
    assert(literals > 1000, `${literals}`);
  }
});
