import { assert, assertEquals } from "@std/assert";
import { checkKernels } from "./kernel_checks.ts";
import { createWasmBackend } from "./wasm/backend.ts";

const backend = createWasmBackend({ threads: 1 });
const OPS = ["expand", "gather", "pad"];

Deno.test("of every op some cases are checked before the many, and each once in all shares", async () => {
  const seen: { op: string; done: number }[] = [];
  const all: string[] = [];
  for await (
    const { op, kernel, case: name, done = 0 } of checkKernels(backend, { ops: OPS })
  ) {
    seen.push({ op, done });
    all.push(`${op} ${kernel}: ${name}`);
  }
  const many = seen.findIndex(({ done }) => done >= 0.1);
  assert(many > 0);
  assertEquals(new Set(seen.slice(0, many).map(({ op }) => op)), new Set(seen.map(({ op }) => op)));
  assertEquals(new Set(all).size, all.length);
  const shares: string[] = [];
  for (const index of [0, 1, 2]) {
    const share = { index, of: 3 };
    for await (
      const { op, kernel, case: name } of checkKernels(backend, { ops: OPS, share })
    ) {
      shares.push(`${op} ${kernel}: ${name}`);
    }
  }
  assertEquals(shares.sort(), all.sort());
});
