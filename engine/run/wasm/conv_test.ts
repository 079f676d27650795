// What convolutions lay out under their windows lies in scratch memory whose size is found while lowering: a window of any
// extents, over planes and volumes of sizes that are known only in a step, must fit into it.

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { symbol } from "../../graph/dim/mod.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { ops } from "../../ops/mod.ts";
import { difference, runCase } from "../case_run.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";
import { createWasmBackend } from "./backend.ts";

interface Windows {
  /** Spatial sizes, of which the last is a symbol where it is not known. */
  readonly spatial: readonly number[];
  readonly isKnown: boolean;
  readonly kernel: readonly number[];
  readonly strides: readonly number[];
  readonly dilations: readonly number[];
  readonly pads: readonly number[];
  readonly channels: number;
  readonly filters: number;
}

/** How a convolution of such windows by the kernel for all of them differs from the reference. */
async function differing(windows: Windows): Promise<string | undefined> {
  const { spatial, isKnown, kernel, channels, filters, strides, dilations, pads } = windows;
  const op = ops.get("conv")!, random = createCaseRandom(21);
  const bindings = isKnown ? {} : { W: spatial.at(-1)! };
  const sizes = isKnown ? spatial : [...spatial.slice(0, -1), symbol("W")];
  const opCase = {
    ...{ name: "windows", attributes: { strides, dilations, pads }, bindings },
    inputs: [
      random.input([1, channels, ...sizes], bindings),
      random.weight("F32", [filters, channels, ...kernel]),
    ],
  };
  const expected = await runCase(createReferenceBackend(), { op, opCase });
  const backend = createWasmBackend({ threads: 1 });
  const actual = await runCase(backend, { op, opCase, kernel: "conv_f32" });
  return difference(actual, expected, { ofLargest: 1e-5, reason: "order of sums" });
}

/** Windows of one place in depth over volumes, whose rows are not shared; rows a little shorter than a chunk of places. */
const LARGE: readonly Partial<Windows>[] = [
  { spatial: [4, 14, 14], kernel: [1, 3, 3], channels: 8, filters: 8 },
  { spatial: [3, 14, 15], kernel: [1, 5, 2], channels: 4, isKnown: false },
  { spatial: [1, 20, 30], kernel: [3, 4, 1], pads: [1, 0, 0, 1, 0, 0] },
  // Channels that are packed run by run.
  { spatial: [9, 70], kernel: [3, 3], pads: [1, 1, 1, 1], channels: 300, isKnown: false },
  { spatial: [4, 8, 9], kernel: [3, 3, 3], channels: 90, filters: 11 },
  ...[499, 509].map((width) => ({
    ...{ spatial: [290, width], kernel: [20, 1], strides: [2, 1], isKnown: false },
  })),
];

Deno.test("what lies under windows fits the scratch memory of a convolution", async () => {
  for (const windows of LARGE) {
    const axes = windows.spatial!.map(() => 1), pads = axes.flatMap(() => [0, 0]);
    const plain = { strides: axes, dilations: axes, pads, isKnown: true, channels: 1, filters: 5 };
    const found = await differing({ ...plain, ...windows } as Windows);
    assertEquals(found, undefined, JSON.stringify(windows));
  }
});

const anyWindows = fc.integer({ min: 2, max: 3 }).chain((axes) => {
  const list = (min: number, max: number, length = axes) =>
    fc.array(fc.integer({ min, max }), { minLength: length, maxLength: length });
  return fc.record({
    ...{ spatial: list(axes === 2 ? 9 : 5, axes === 2 ? 60 : 12), isKnown: fc.boolean() },
    ...{ kernel: list(1, 3), strides: list(1, 3), dilations: list(1, 2) },
    ...{ pads: list(0, 2, 2 * axes) },
    channels: fc.integer({ min: 1, max: 4 }),
    filters: fc.integer({ min: 1, max: 12 }),
  });
});

Deno.test("convolutions of any windows are the reference's", async () => {
  await fc.assert(
    fc.asyncProperty(anyWindows, async (windows) => {
      assertEquals(await differing(windows), undefined);
    }),
    { numRuns: 60 },
  );
});
