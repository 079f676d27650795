import { assertEquals } from "@std/assert";
import { probeCapabilities } from "./probe.ts";

Deno.test("forcing baseline claims nothing of relaxed SIMD", () => {
  assertEquals(probeCapabilities("baseline"), {
    simd: "baseline",
    dotI8U8Exact: false,
    dotI8I8Exact: false,
    hasWideVectors: false,
  });
});

Deno.test("the relaxed dot cannot read its second operand both ways", () => {
  const { dotI8U8Exact, dotI8I8Exact, simd } = probeCapabilities();
  assertEquals(simd, "relaxed"); // V8 has it on every processor
  assertEquals(dotI8U8Exact && dotI8I8Exact, false);
});
