import { compareConvolutions } from "../../../tests/support/joined_convolutions.ts";
import { JOINING, runWithFlags } from "../../../tests/support/joining.ts";

const SCRIPT = new URL("../../../tests/support/joined_convolutions.ts", import.meta.url).pathname;

Deno.test("convolutions that V8 joins to 256 bits give the bits of the others", async () => {
  await compareConvolutions();
});

Deno.test("they do where V8 joins them", async () => {
  await runWithFlags(SCRIPT, JOINING);
});
