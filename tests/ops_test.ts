// Every op, every kernel, every device, on the cases that the ops offer. An op, a kernel or a case is
// added without touching this file; a device is one row here.

import { assert, assertEquals, assertGreater } from "@std/assert";
import { ops } from "../engine/ops/mod.ts";
import type { Backend } from "../engine/run/backend.ts";
import { createReferenceBackend } from "../engine/run/reference/reference_backend.ts";
import { checkKernels, createReferences } from "../engine/run/kernel_checks.ts";
import { kernelNames } from "../engine/run/kernel_choice.ts";
import { WASM_KERNELS } from "../engine/run/wasm/kernel_table.ts";
import { createWasmBackend } from "../engine/run/wasm/backend.ts";
import { holdMachine } from "./support/hold_machine.ts";

const SEED = 1;

const devices: readonly {
  readonly name: string;
  readonly backend: Backend;
  /** Cases that each kernel is to pass; absent: all. */
  readonly enough?: number;
}[] = [
  {
    name: "wasm, baseline SIMD, one thread",
    backend: createWasmBackend({ variant: "baseline", threads: 1 }),
  },
  { name: "wasm, probed SIMD, one thread", backend: createWasmBackend({ threads: 1 }) },
  {
    // A kernel's chunks are shared out in one way, whatever the case.
    name: "wasm, probed SIMD, two threads",
    backend: createWasmBackend({ threads: 2, shared: true }),
    enough: 8,
  },
  {
    // pc-wasm-01: pointers are unsigned in every kernel.
    name: "wasm, above 2 GiB",
    backend: createWasmBackend({ threads: 1, skipBytes: 2 ** 31, shared: true }),
    enough: 4,
  },
];

const references = createReferences(SEED);
const computing = [...ops.values()].filter((op) => !op.view);

for (const op of computing) {
  Deno.test(`${op.name} has cases and its reference gives numbers on all of them`, async () => {
    const cases = references.cases(op);
    assertGreater(cases.length, 0);
    let computed = 0;
    for (const opCase of cases) {
      for (const [name, values] of await references.result(op, opCase)) {
        const numbers = Array.from(values as Float32Array, Number);
        const finite = numbers.filter(Number.isFinite);
        // Some cases are of special values.
        assert(2 * finite.length >= numbers.length, `${opCase.name}: ${name} is not finite`);
        computed += finite.filter((value) => value !== 0).length;
      }
    }
    assertGreater(computed, 0, "all results are zero");
    assertEquals(new Set(cases.map(({ name }) => name)).size, cases.length, "a case name twice");
  });
}

Deno.test("every word, flag and option of an op's attributes is in one of its cases", () => {
  const missing = [...ops.values()].filter(({ cases }) => cases).flatMap((op) => {
    const given = references.cases(op).map(({ attributes = {} }) => op.attributes(attributes));
    return Object.entries(op.rules).flatMap(([name, rule]) => {
      const flags = [true, false].filter(rule.accepts);
      const words = rule.words ?? flags;
      const open = words.filter((word) => !given.some((attributes) => attributes[name] === word));
      // Of numbers and lists, one that is not the default.
      const isDefault = words.length === 0 &&
        given.every((attributes) =>
          JSON.stringify(attributes[name]) === JSON.stringify(rule.fallback)
        );
      return [...open, ...isDefault ? ["another than the default"] : []]
        .map((value) => `${op.name}: ${name} ${value}`);
    });
  });
  assertEquals(missing, []);
});

for (const { name: device, backend, enough = Infinity } of devices) {
  for (const op of computing) {
    const kernels = kernelNames(backend.kernels, op.name);
    if (kernels.length === 0) continue;
    Deno.test(`${op.name} on ${device} equals its reference (seed ${SEED})`, async () => {
      const held = await holdMachine(backend);
      const passed = new Map<string, number>();
      const timesOf = (kernel: string) => passed.get(kernel) ?? 0;
      const options = {
        ...{ ops: [op.name], references },
        kernels: (kernel: string) => timesOf(kernel) < enough,
      };
      for await (const check of checkKernels(backend, options)) {
        const { kernel, outcome, reason } = check;
        assert(outcome !== "failed", `${kernel} on ${check.case}: ${reason}`);
        if (outcome === "passed") passed.set(kernel, timesOf(kernel) + 1);
      }
      held.dispose();
      assertEquals([...passed.keys()].sort(), [...kernels].sort(), "a kernel that takes no case");
    });
  }
}

/**
 * Rare ops of ONNX graphs, which the host computes between two programs of a device; and the sum over a group of devices,
 * which is the host's, or sums of two where one device has it.
 */
const ON_HOST: ReadonlySet<string> = new Set([
  "all_reduce",
  ...["affine_grid", "col2im", "conv_integer", "deform_conv", "det", "dft", "eye", "grid_sample"],
  ...["linear_attention", "local_response_norm", "lp_normalize", "max_roi_pool", "max_unpool"],
  ...["random", "reverse_sequence", "roi_align", "unpack_bits"],
]);

Deno.test("every op has a kernel on WASM, but for rare ones", () => {
  const without = computing.filter(({ name }) => !ON_HOST.has(name))
    .filter((op) => kernelNames(WASM_KERNELS, op.name).length === 0);
  assertEquals(without.map(({ name }) => name), []);
  assertEquals([...ON_HOST].filter((name) => !ops.has(name)), []);
});

Deno.test("a kernel that is wrong in one element fails the self-test", async () => {
  const wrong: Backend = {
    name: "wasm",
    kernels: WASM_KERNELS,
    async prepare(plan, options) {
      const { forceKernels: _, ...others } = options;
      const executable = await createReferenceBackend().prepare(plan, others);
      const { run } = executable;
      return {
        ...executable,
        run(bindings) {
          run(bindings);
          const output = executable.output("output0");
          if (output.length > 7) output[7] = Number(output[7]) * 1.001 + 0.001;
        },
      };
    },
  };
  const outcomes: string[] = [];
  for await (const { outcome } of checkKernels(wrong, { ops: ["unary"] })) outcomes.push(outcome);
  assert(outcomes.includes("failed"));
});
