// What the compiled kernels multiply floats by, read out of their WebAssembly text (spec LF-5): scales of groups,
// never single elements.

import { assert, assertEquals } from "@std/assert";
import { compileModule, sources } from "../tools/build/wasm.ts";
import { KERNEL_LAYOUTS, TERNARY } from "../wasm/gen/kernel_layouts.ts";

const STYLES = { RELAXED: ["pair", "dot"], BASELINE: ["plain"] } as const;

/** The text of some modules' exports, by function name. */
async function functionTexts(variant: string, index: string): Promise<Map<string, string>> {
  const texts = new Map([...await sources(), ["index.ts", index]]);
  const text = await compileModule(texts, `kernels_${variant.toLowerCase()}`, true) as string;
  return new Map(
    text.split("\n (func $").slice(1).map((one) => [one.slice(0, one.search(/[\s)]/)), one]),
  );
}

/** The bodies of a function's innermost loops; blocks are told by their indentation. */
function innermostLoops(text: string): string[] {
  return [...text.matchAll(/^( +)loop .*\n([^]*?)\n\1end/gm)].flatMap(([whole, , body]) =>
    /^ +loop /m.test(body!) ? innermostLoops(whole.slice(whole.indexOf("\n") + 1)) : [body!]
  );
}

function count(text: string, pattern: RegExp): number {
  return [...text.matchAll(pattern)].length;
}

/** Floats that a text multiplies, vectors counting four. */
function floatProducts(text: string): number {
  return 4 * count(text, /f32x4\.(mul|div|relaxed_madd|relaxed_nmadd)\b/g) +
    count(text, /f(32|64)\.(mul|div)\b/g);
}

/** Vector products of integers. */
function integerProducts(text: string): number {
  return count(text, /i32x4\.(relaxed_)?dot_i|i16x8\.relaxed_dot_i/g);
}

interface Loops {
  /** Function, and the module it is of. */
  readonly name: string;
  readonly module: string;
  readonly groupColumns: number;
  /** Most float products of a group. */
  readonly most: number;
}

/** Kernels with one loop over cells: by layout, and for points of grids by the length of their groups. */
function cellKernels(style: string): Loops[] {
  const module = `gemv_${style}`, unpacked = `gemv_unpacked_${style}`;
  const own = KERNEL_LAYOUTS.filter(({ points, kernel }) => !points && kernel !== TERNARY);
  const groups = new Set(
    KERNEL_LAYOUTS.flatMap(({ points, groupColumns }) => points ? [groupColumns] : []),
  );
  return [
    ...own.map(({ kernel, groupColumns, scales }) => ({
      ...{ name: `${module}_${kernel}`, module, groupColumns },
      most: scales === "f32|" || scales === "f32 z32|" ? 3 : 7,
    })),
    ...[...groups].map((groupColumns) => ({
      ...{ name: `${unpacked}_g${groupColumns}`, module: unpacked, groupColumns, most: 7 },
    })),
  ];
}

for (const [variant, styles] of Object.entries(STYLES)) {
  Deno.test(`kernels on 8-bit activations multiply floats once a group, not once an element (${variant.toLowerCase()})`, async () => {
    const kernels = styles.flatMap(cellKernels);
    const ternary = styles.map((style) => ({
      name: `gemv_${style}_${TERNARY}`,
      module: `gemv_${style}`,
    }));
    const lines = [...kernels, ...ternary]
      .map(({ name, module }) => `export { ${name} } from "./generated/${module}";`);
    const texts = await functionTexts(variant, lines.join("\n"));
    const textOf = ({ name, module }: Pick<Loops, "name" | "module">) =>
      texts.get(`generated/${module}/${name}`)!;
    for (const kernel of kernels) {
      const { name, groupColumns, most } = kernel;
      const [loop, ...others] = innermostLoops(textOf(kernel));
      assertEquals(others.length, 0, name);
      // A cell: eight rows of 32 columns.
      assert(integerProducts(loop!) >= 16, name);
      const groups = 8 * 32 / groupColumns;
      assert(
        floatProducts(loop!) <= most * groups,
        `${name}: ${floatProducts(loop!)} float products for ${groups} groups`,
      );
    }
    // Its loops add up digits of several cells; floats follow behind them.
    for (const kernel of ternary) {
      const loops = innermostLoops(textOf(kernel));
      assert(loops.length > 0 && loops.every((loop) => integerProducts(loop) > 0), kernel.name);
      assertEquals(loops.map(floatProducts), loops.map(() => 0), kernel.name);
    }
  });
}

Deno.test("the group loop of LF8 in strict order has whole numbers only", async () => {
  for (const variant of Object.keys(STYLES)) {
    const texts = await functionTexts(variant, 'export { matmul_lf8 } from "./matmul/lf8";');
    const row = texts.get("matmul/lf8/product")!;
    const [ladder, ...others] = innermostLoops(row);
    assertEquals(others.length, 0);
    assertEquals(count(ladder!, /\bf32\.|\bf64\.|f32x4\.|f64x2\./g), 0);
    assertEquals(count(ladder!, /i16x8\.extend_(low|high)_i8x16_s/g), 4);
    assertEquals(count(ladder!, /i32x4\.dot_i16x8_s/g), 2);
    // Around it the two scales of the group.
    assertEquals(floatProducts(row), 2);
  }
});
