import { assertEquals } from "@std/assert";
import { sourceHash, sources } from "../tools/build.ts";
import baseline from "../wasm/kernels_baseline.gen.json" with { type: "json" };
import relaxed from "../wasm/kernels_relaxed.gen.json" with { type: "json" };

Deno.test("wasm/kernels_*.gen.json are built from the present sources (run: deno task build)", async () => {
  const expected = await sourceHash(await sources());
  for (const built of [baseline, relaxed]) assertEquals(built.sourceHash, expected);
});
