import { assertEquals } from "@std/assert";
import { sourceHash, sources } from "../tools/build.ts";
import { SOURCE_HASH } from "../wasm/kernels.gen.ts";

Deno.test("wasm/kernels.gen.ts is built from the present sources (run: deno task build)", async () => {
  assertEquals(SOURCE_HASH, await sourceHash(await sources()));
});
