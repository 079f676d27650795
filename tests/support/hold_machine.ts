// Something that runs on a shared machine of a backend, so that it is not started anew for every case.

import { createGraphBuilder } from "../../engine/graph/builder.ts";
import { getOp } from "../../engine/ops/mod.ts";
import type { Backend, PreparedPlan } from "../../engine/run/backend.ts";
import { plan } from "../../engine/plan/planner.ts";

/** Holds the machine until it is disposed. */
export function holdMachine(backend: Backend): Promise<PreparedPlan> {
  const builder = createGraphBuilder("hold", getOp);
  const x = builder.input("x", [1], "f32");
  builder.output("y", builder.op("binary", [x, x], { kind: "add" }, "add")[0]!);
  return backend.prepare(plan(builder.build(), { limits: {} }), { slots: 1 });
}
