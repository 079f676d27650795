import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { compareProducts } from "../tests/support/joined_products.ts";
import { probeCapabilities } from "./probe.ts";

const SCRIPT = new URL("../tests/support/joined_products.ts", import.meta.url).pathname;
// Code of the optimising compiler alone, which is what joins.
const FLAGS = "--experimental-wasm-revectorize,--no-liftoff";

async function withFlags(flags: string, formats: readonly string[] = []): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", `--v8-flags=${flags}`, SCRIPT, ...formats],
  }).output();
  const [out, error] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  assertEquals(code, 0, error);
  return out!;
}

Deno.test("kernels that V8 joins to 256 bits give the bits of the others", async () => {
  await compareProducts();
});

Deno.test("they do where V8 joins them, and a machine sees that it does", async () => {
  const { hasWideVectors } = probeCapabilities();
  assertStringIncludes(await withFlags(FLAGS), `joins: ${hasWideVectors}`);
});

Deno.test("a machine sees that V8 does not join", async () => {
  assertStringIncludes(await withFlags("--no-liftoff", ["Q4_K"]), "joins: false");
});

// A new V8 may have another opinion of a kernel: then its text is the slower one.
Deno.test("V8 joins tiles of every kind", async () => {
  if (!probeCapabilities().hasWideVectors) return;
  for (
    const format of ["Q4_K", "Q5_K", "Q6_K", "Q3_K", "Q4_0", "Q5_0", "Q8_0", "Q4_1", "LF8", "Q2_K"]
  ) {
    const trace = await withFlags(`${FLAGS},--trace-wasm-revectorize`, [format]);
    // Tiles of eight rows and of four.
    const joined = trace.matchAll(/Decide(?:d)? to vectorize, (\d+) rev/g);
    const large = [...joined].filter(([, nodes]) => Number(nodes) > 60);
    assert(large.length >= 2, `${format}: ${large.length} kernels are joined`);
  }
});
