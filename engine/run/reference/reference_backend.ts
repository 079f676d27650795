// The scalar reference as a backend: interprets a Plan node by node with the ops' references. It is slow
// on purpose and is the definition by which the other backends are judged. It keeps activations at the
// planned offsets of one arena, so a plan that lets two live tensors overlap gives wrong numbers here
// too. Weights are decoded to float32; f16 states are stored as f16, which defines how they round.

import { product } from "../../graph/dim/mod.ts";
import type { HostData, Value } from "../../graph/graph.ts";
import { hostArray, hostElementBytes } from "../../ops/host_tensor.ts";
import type { Backend, PreparedPlan, PrepareOptions } from "../backend.ts";
import { createHostStates } from "./host_states.ts";
import { loadHostWeights } from "../host_weights.ts";
import { weightsOf } from "../plan_weights.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { createPieces } from "../pieces.ts";
import { createPlanUse } from "../plan_use.ts";
import { referenceStep } from "./reference_step.ts";
import { maximumOf } from "../../plan/sizes.ts";
import { isQ8 } from "../../ops/q8_rows.ts";

/** Makes the reference backend. */
export function createReferenceBackend(): Backend {
  return { name: "reference", kernels: {}, prepare };
}

async function prepare(plan: Plan, options: PrepareOptions): Promise<PreparedPlan> {
  const { graph } = plan;
  const weights = await loadHostWeights(weightsOf(plan), options);
  const states = createHostStates(graph, options);
  const storage = new Map<number, HostData>([...weights, ...givenData(plan), ...arenaData(plan)]);
  const memory = {
    data: ({ id }: Value) => storage.get(id),
    state: states.data,
    store: states.store,
  };
  const steps = plan.steps.map(({ node }) => referenceStep(plan, { node, memory }));
  const dataOf = (value: Value) => storage.get(rootOf(plan, value).id)!;
  const use = createPlanUse(plan, {
    ...{ input: dataOf, output: dataOf },
    free: () => storage.clear(),
  });
  const inPieces = createPieces({
    count: steps.length,
    run(bindings, { first, count }) {
      use.checkAlive();
      for (let i = first; i < first + count; i++) steps[i]!(bindings);
    },
  });
  return {
    plan,
    memory: {
      weights: bytesOf(weights.values()),
      arena: plan.arenaBytes,
      ...{ statePerSlot: states.bytesPerSlot, states: states.bytes },
      other: bytesOf(graph.inputs.map(({ id }) => storage.get(id)!)),
    },
    ...states.pages && { pages: states.pages },
    openSlot: states.open,
    closeSlot: states.close,
    readState: states.read,
    writeState: states.write,
    input: use.input,
    output: use.output,
    run(bindings, _wish, signal) {
      use.checkRun(bindings);
      if (signal) return inPieces(bindings, signal);
      for (const step of steps) step(bindings);
    },
    dispose: use.dispose,
  };
}

function bytesOf(data: Iterable<HostData>): number {
  return [...data].reduce((sum, { byteLength }) => sum + byteLength, 0);
}

// Elements at the maximum binding.
function mostElements({ limits }: Plan, { shape }: Value): number {
  return maximumOf(product(shape), limits);
}

/** Inputs, at their maximum, and constants. */
function givenData(plan: Plan): [number, HostData][] {
  const { inputs, nodes } = plan.graph;
  const constants = nodes.flatMap((node) => node.inputs).filter((value) => value?.data);
  return [
    ...inputs.map((value): [number, HostData] => [
      value.id,
      hostArray(value.dtype, { count: mostElements(plan, value) }),
    ]),
    ...constants.map((value): [number, HostData] => [value!.id, value!.data as HostData]),
  ];
}

function arenaData(plan: Plan): [number, HostData][] {
  const arena = new ArrayBuffer(plan.arenaBytes);
  return [...plan.placements.values()].map(({ value, offset }) => {
    const { id, dtype } = value;
    const count = mostElements(plan, value);
    // A q8 value is held as the floats it stands for, which are larger than its planned bytes.
    const fits = !isQ8(dtype) && offset % hostElementBytes(dtype) === 0;
    return [
      id,
      fits ? hostArray(dtype, { count, buffer: arena, offset }) : hostArray(dtype, { count }),
    ];
  });
}
