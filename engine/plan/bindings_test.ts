// Sizes that bindings make negative: refused with the place, not computed on.

import { assertEquals, assertThrows } from "@std/assert";
import { createGraphBuilder } from "../graph/builder.ts";
import { symbol } from "../graph/dim/mod.ts";
import { getOp } from "../ops/mod.ts";
import { checkBindings, fitsSizes } from "../run/bindings.ts";
import { plan } from "./planner.ts";

Deno.test("bindings that leave fewer rows than are cut off are refused", () => {
  const builder = createGraphBuilder("cut", getOp);
  const x = builder.input("x", [symbol("N"), 2], "f32");
  const cut = { before: [-1, 0], after: [-2, 0] };
  builder.output("y", builder.op("pad", [x], cut, "crop")[0]!);
  const made = plan(builder.build(), { limits: { N: 5 } });
  checkBindings(made, { N: 3 });
  assertEquals([fitsSizes(made, { N: 3 }), fitsSizes(made, { N: 2 })], [true, false]);
  assertThrows(
    () => checkBindings(made, { N: 2 }),
    RangeError,
    "Cannot run cut with N = 2: crop would have a dim N - 3 of -1",
  );
});
