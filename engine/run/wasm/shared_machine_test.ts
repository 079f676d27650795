import { assert, assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { OutOfMemoryError } from "../../../wasm/allocator.ts";
import { createMachine } from "../../../wasm/machine.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { plan } from "../../plan/planner.ts";
import { createWasmArena } from "./arena.ts";
import { createWasmBackend } from "./backend.ts";
import { createSharedMachine } from "./shared_machine.ts";

function sum(width: number): Graph {
  const builder = createGraphBuilder("sum", getOp);
  const x = builder.input("x", [width], "f32");
  builder.output("y", builder.op("binary", [x, x], { kind: "add" }, "add")[0]!);
  return builder.build();
}

Deno.test("borrowers have one memory; what one gives back the next one gets", async () => {
  const shared = createSharedMachine(() => createMachine({ threads: 1 }));
  const first = await shared.borrow(), second = await shared.borrow();
  assertStrictEquals(first.memory, second.memory);
  const base = second.usedBytes;
  const address = first.allocate(1024);
  first.allocate(64);
  assert(second.usedBytes >= base + 1024);
  first.dispose();
  first.dispose();
  assertEquals(second.usedBytes, base);
  assertEquals(second.allocate(1024), address);
  second.dispose();
  // Nobody is left, so the next one starts a machine of its own.
  const third = await shared.borrow();
  assert(third.memory !== first.memory);
  third.dispose();
});

Deno.test("executables of one shared backend do not disturb each other", async () => {
  const backend = createWasmBackend({ threads: 1, shared: true });
  const prepare = (width: number) =>
    backend.prepare(plan(sum(width), { limits: {} }), { slots: 1 });
  const one = await prepare(5), other = await prepare(9);
  (one.input("x") as Float32Array).fill(1);
  (other.input("x") as Float32Array).fill(2);
  one.run({});
  other.run({});
  assertEquals([...one.output("y") as Float32Array], Array(5).fill(2));
  one.dispose();
  const next = await prepare(7);
  (next.input("x") as Float32Array).fill(4);
  next.run({});
  assertEquals([...other.output("y") as Float32Array], Array(9).fill(4));
  assertEquals([...next.output("y") as Float32Array], Array(7).fill(8));
  other.dispose();
  next.dispose();
});

Deno.test("an arena that the system had no memory for is made when it has", async () => {
  const { Memory } = WebAssembly;
  let refusals = 1;
  WebAssembly.Memory = new Proxy(Memory, {
    construct(target, [descriptor]) {
      if (refusals > 0) throw new RangeError("could not allocate memory");
      return new target(descriptor);
    },
  });
  const arena = createWasmArena(2 ** 16, { threads: 1 });
  try {
    await assertRejects(() => arena.borrow(), OutOfMemoryError, "the system refuses");
    refusals = 0;
    using _machine = await arena.borrow();
    assertEquals(arena.place("graph", 2 ** 16) > 0, true);
  } finally {
    WebAssembly.Memory = Memory;
    arena.dispose();
  }
});
