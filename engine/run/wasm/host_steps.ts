// Steps that have no WASM kernel: they run by their reference on views of WASM memory, between two
// programs. A weight that such a step reads has to be there element by element, whatever kernels need.

import type { Machine } from "../../../wasm/machine.ts";
import type { ProfileEntry } from "../../../wasm/program.ts";
import { type DimEnv, product } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import type { StepMemory } from "../reference/reference_step.ts";
import { maximumOf } from "../../plan/sizes.ts";
import { readsPacked } from "../plan_weights.ts";
import type { ChosenKernels, HostStep } from "./lowering.ts";
import { viewAt } from "./values.ts";
import type { WeightUse } from "./weights.ts";

/** Memory of a plan as its references see it. */
export function hostMemory(
  machine: Machine,
  { plan: { limits }, addressOf }: {
    readonly plan: Plan;
    readonly addressOf: (value: Value) => number;
  },
): StepMemory {
  return {
    data: (root) =>
      root.role === "state" ? undefined : viewAt(machine, {
        dtype: root.dtype,
        address: addressOf(root),
        count: maximumOf(product(root.shape), limits),
      }),
    state(root) {
      throw new TypeError(`Cannot run on the host: ${root.name} is a state`);
    },
    store: () => {},
  };
}

/** How each weight is read by the steps of a plan. */
export function weightUses(plan: Plan, kernels: ChosenKernels): (value: Value) => WeightUse {
  const uses = new Map<Value, { packed: boolean; plain: boolean }>();
  plan.steps.forEach(({ node }, step) =>
    node.inputs.forEach((value, index) => {
      const root = value && rootOf(plan, value);
      if (root?.role !== "weight") return;
      const use = uses.get(root) ?? { packed: false, plain: false };
      uses.set(root, use);
      const packed = root === value && kernels[step] !== undefined && readsPacked(node, index);
      use[packed ? "packed" : "plain"] = true;
    })
  );
  // What only a view reads: elements.
  return (value) => uses.get(value) ?? { packed: false, plain: true };
}

/** Runs steps of the host and adds up their times. */
export function createHostClock(): {
  run(step: HostStep, bindings: DimEnv): void;
  /** Times by step since the last call. */
  take(): ProfileEntry[];
} {
  const times = new Map<string, { name: string; calls: number; ms: number }>();
  return {
    run({ name, runOnHost }, bindings) {
      const start = performance.now();
      runOnHost(bindings);
      const entry = times.get(name) ?? { name, calls: 0, ms: 0 };
      entry.calls++;
      entry.ms += performance.now() - start;
      times.set(name, entry);
    },
    take() {
      const taken = [...times.values()];
      times.clear();
      return taken;
    },
  };
}
