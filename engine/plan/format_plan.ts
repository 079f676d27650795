// A plan as text, for `troodon info`, `troodon plan` and golden tests: waves with their nodes, shapes
// under given bindings, where each result lies, and what the memory planning achieved. Deterministic, so
// that a change of a plan is a readable diff.

import { type DimEnv, evaluate, formatDim } from "../graph/dim/mod.ts";
import type { Node, Value } from "../graph/graph.ts";
import { nameOf } from "./passes/match.ts";
import { type Plan, rootOf } from "./plan.ts";

/**
 * Prints a plan.
 *
 * @param env Values for the shapes; default: symbols stay names.
 */
export function formatPlan(plan: Plan, env?: DimEnv): string {
  const { graph, limits, steps, waves } = plan;
  const bounds = Object.entries(limits).map(([name, limit]) => `${name} <= ${limit}`);
  const lines = [
    `plan of ${graph.name}: ${steps.length} steps in ${waves} waves, ${bounds.join(", ")}`,
    memoryLine(plan),
    ...graph.inputs.map((value) => `input   ${describe(value, env)}`),
    ...graph.states.map((value) => `state   ${describe(value, env)}`),
    ...graph.outputs.map((value) => `output  ${describe(value, env)}${place(plan, value)}`),
  ];
  const width = String(Math.max(0, waves - 1)).length;
  for (const { node, wave } of steps) {
    lines.push(`${String(wave).padStart(width)}  ${describeStep(plan, node, env)}`);
  }
  return lines.join("\n") + "\n";
}

function memoryLine({ policy, alignment, arenaBytes, naiveBytes, lowerBoundBytes }: Plan): string {
  const saved = naiveBytes === 0 ? 0 : 100 * (1 - arenaBytes / naiveBytes);
  return `arena ${arenaBytes} bytes (${policy}, aligned to ${alignment}), ` +
    `lower bound ${lowerBoundBytes}, without reuse ${naiveBytes}, saved ${saved.toFixed(1)} %`;
}

function describeStep(plan: Plan, node: Node, env: DimEnv | undefined): string {
  const inputs = node.inputs.map((value) => value ? labelOf(plan, value) : "-").join(", ");
  const outputs = node.outputs.map((value) => describe(value, env) + place(plan, value));
  return `${nameOf(node)}(${inputs}) -> ${outputs.join(", ")}`;
}

// A view is no step, so it goes by the name of what it shows; versions of a state keep theirs.
function labelOf(plan: Plan, value: Value): string {
  return value.role === "state" ? value.name : rootOf(plan, value).name;
}

function describe({ name, dtype, shape }: Value, env: DimEnv | undefined): string {
  const dims = shape.map((dim) => env ? evaluate(dim, env) : formatDim(dim));
  return `${name} ${dtype}[${dims.join(", ")}]`;
}

function place(plan: Plan, value: Value): string {
  const root = rootOf(plan, value);
  const placement = plan.placements.get(root.id);
  if (!placement) return root === value ? "" : ` in ${root.name}`;
  const { offset, bytes, first, last } = placement;
  return ` @${offset}+${bytes} waves ${first}..${last}`;
}
