import { assert, assertStringIncludes } from "@std/assert";
import { compareProducts } from "../tests/support/joined_products.ts";
import { joinedNodes, JOINING, runWithFlags } from "../tests/support/joining.ts";
import { probeCapabilities } from "./probe.ts";

const SCRIPT = new URL("../tests/support/joined_products.ts", import.meta.url).pathname;

Deno.test("kernels that V8 joins to 256 bits give the bits of the others", async () => {
  await compareProducts();
});

Deno.test("they do where V8 joins them, and a machine sees that it does", async () => {
  const { hasWideVectors } = probeCapabilities();
  assertStringIncludes(await runWithFlags(SCRIPT, JOINING), `joins: ${hasWideVectors}`);
});

Deno.test("a machine sees that V8 does not join", async () => {
  assertStringIncludes(await runWithFlags(SCRIPT, "--no-liftoff", ["Q4_K"]), "joins: false");
});

// A new V8 may have another opinion of a kernel: then its text is the slower one.
Deno.test("V8 joins tiles of every kind", async () => {
  if (!probeCapabilities().hasWideVectors) return;
  for (
    const format of [
      "Q4_K",
      "Q5_K",
      "Q6_K",
      "Q3_K",
      "Q4_0",
      "Q5_0",
      "Q8_0",
      "Q4_1",
      "LF8",
      "Q2_K",
      "F32",
      "INT7",
      "integers",
    ]
  ) {
    // Tiles of eight rows and of four; of floats of five, four and three, of decoded ones of eight, six, five and four; of
    // 7 bit and of codes on both sides of eight.
    const large = (await joinedNodes(SCRIPT, [format])).filter((nodes) => nodes > 60);
    const fewest: Record<string, number> = { F32: 7, INT7: 1, integers: 1 };
    assert(
      large.length >= (fewest[format] ?? 2),
      `${format}: ${large.length} kernels are joined`,
    );
  }
});

Deno.test("V8 joins the products of one row of floats", async () => {
  if (!probeCapabilities().hasWideVectors) return;
  for (
    const [format, least] of [
      ...[["F16", 100], ["Q4_0", 650], ["Q8_0", 650], ["NB4", 650]] as const,
      ...[["Q4_K", 650], ["Q5_K", 750], ["Q6_K", 700]] as const,
    ]
  ) {
    const most = Math.max(...await joinedNodes(SCRIPT, [format]));
    assert(most > least, `${format}: of ${most} pairs`);
  }
});
