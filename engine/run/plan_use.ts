// What every backend does for who uses a prepared plan: inputs and outputs are found by name, bindings are checked
// before a run, and after `dispose` nothing goes on.

import type { DimEnv } from "../graph/dim/mod.ts";
import type { HostData, Value } from "../graph/graph.ts";
import type { Plan } from "../plan/plan.ts";
import type { PreparedPlan } from "./backend.ts";
import { checkBindings } from "./bindings.ts";

/** The part of a prepared plan that is the same on all devices. */
export interface PlanUse extends Pick<PreparedPlan, "input" | "output" | "dispose"> {
  /**
   * To be called before everything else that is done with a plan.
   *
   * @throws {TypeError} If it has been disposed.
   */
  checkAlive(): void;
  /** To be called before a run. @throws {RangeError} If the bindings do not fit. */
  checkRun(bindings: DimEnv): void;
}

/** Makes it; inputs and outputs are asked for their memory once. */
export function createPlanUse(
  plan: Plan,
  { input, output, free }: {
    readonly input: (value: Value) => HostData;
    readonly output: (value: Value) => HostData;
    /** Gives memory back. */
    readonly free: () => void;
  },
): PlanUse {
  const { graph } = plan;
  const inputs = new Map(graph.inputs.map((value) => [value.name, input(value)]));
  const outputs = new Map(graph.outputs.map((value) => [value.name, output(value)]));
  let disposed = false;

  function checkAlive(): void {
    if (disposed) throw new TypeError(`Cannot use graph ${graph.name}: it has been disposed`);
  }

  function named(views: ReadonlyMap<string, HostData>, kind: string, name: string): HostData {
    checkAlive();
    const view = views.get(name);
    if (view) return view;
    const known = [...views.keys()].join(", ");
    throw new RangeError(`Graph ${graph.name} has no ${kind} "${name}": it has ${known}`);
  }

  return {
    input: (name) => named(inputs, "input", name),
    output: (name) => named(outputs, "output", name),
    checkAlive,
    checkRun(bindings) {
      checkAlive();
      checkBindings(plan, bindings);
    },
    dispose() {
      if (disposed) return;
      disposed = true;
      free();
    },
  };
}
