import { assert, assertEquals } from "@std/assert";
import { expNegative } from "./exp.ts";

Deno.test("expNegative has a relative error below 1e-15 against Math.exp", () => {
  let worst = 0;
  for (let i = 0; i < 200000; i++) {
    const x = -((i * 0.0035) + (i % 97) * 1e-7);
    worst = Math.max(worst, Math.abs(expNegative(x) / Math.exp(x) - 1));
  }
  assert(worst < 1e-15, String(worst));
});

Deno.test("expNegative is exact at its ends", () => {
  assertEquals(expNegative(0), 1);
  assertEquals(expNegative(-0), 1);
  assertEquals(expNegative(-Infinity), 0);
  assertEquals(expNegative(-746), 0);
  assert(Math.abs(expNegative(-744) - Math.exp(-744)) <= 2 ** -1074);
  assert(Number.isNaN(expNegative(NaN)));
});
