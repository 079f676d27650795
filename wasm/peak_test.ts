import { assertEquals, assertThrows } from "@std/assert";
import { createMachine, type Machine } from "./machine.ts";
import { instruction } from "./opcodes.ts";
import { peakKinds } from "../bench/support/peak_kinds.ts";
import { createProgram } from "./program.ts";

function runPeak(machine: Machine, kind: number): void {
  const [opcode, operands] = instruction<"peak", number>("peak", { chunks: 3, kind, times: 10 });
  using program = createProgram(machine, [{ name: "peak", opcode, operands, barrier: true }]);
  program.run();
}

Deno.test("every kind of arithmetic that a variant is said to have runs", async () => {
  for (const variant of ["baseline", "relaxed"] as const) {
    using machine = await createMachine({ threads: 2, variant });
    const kinds = peakKinds(machine.capabilities);
    assertEquals(kinds.map(({ name }) => name).includes("dot"), variant === "relaxed");
    for (const { kind } of kinds) runPeak(machine, kind);
  }
});

Deno.test("relaxed arithmetic traps in the baseline variant instead of measuring nothing", async () => {
  using machine = await createMachine({ threads: 1, variant: "baseline" });
  assertThrows(() => runPeak(machine, 0), Error, "unreachable");
});
