import { assertEquals } from "@std/assert";
import { createMachine } from "./machine.ts";
import { warmUp } from "./warm_up.ts";
import { WEIGHT_LAYOUTS } from "./weight_layout.ts";

Deno.test("warming up runs every kernel and leaves no memory behind", async () => {
  for (const variant of ["baseline", "relaxed"] as const) {
    using machine = await createMachine({ threads: 2, variant });
    const used = machine.usedBytes;
    warmUp(machine, [
      ...WEIGHT_LAYOUTS.map(({ format }) => ({ op: "matmul", format } as const)),
      ...WEIGHT_LAYOUTS.filter(({ kind }) => kind === "codes").map(({ format }) =>
        ({ op: "matmul_q8", format }) as const
      ),
      { op: "matmul", format: "IQ4_XS" },
    ]);
    assertEquals(machine.usedBytes, used);
  }
});
