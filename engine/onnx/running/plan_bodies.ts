// What stands inside a graph's nodes: the bodies of If, Loop and Scan, also in each other. Sizes in a body are those that
// the file declares for what flows into it; where it declares none they are known in a run only, and only the nodes are
// counted. Functions that a file defines are part of the plan itself: they are expanded before.

import { bodiesOf, namesReadBy } from "../derivation/prepare.ts";
import type { OnnxGraph, OnnxModel, OnnxValueInfo } from "../file/model.ts";
import { namedBodies } from "./draw_file.ts";
import { type GraphPlan, planGraph, type PlanGraphOptions } from "./plan_graph.ts";

/** A body. */
export interface BodyPlan {
  /** `If(gate) then_branch`, with the bodies around it in front. */
  readonly name: string;
  /** Nodes, those of bodies in it counted. */
  readonly nodes: number;
  /** Absent: its sizes are not declared. */
  readonly plan?: GraphPlan;
}

/** Plans of all bodies of a graph, outer ones first. */
export function planBodies(model: OnnxModel, options: PlanGraphOptions): BodyPlan[] {
  return bodyPlans(model, { graph: model.graph, path: "", outer: infosOf(model.graph) }, options);
}

interface Scope {
  readonly graph: OnnxGraph;
  readonly path: string;
  /** Declared types of what the graph and those around it name. */
  readonly outer: ReadonlyMap<string, OnnxValueInfo>;
}

function bodyPlans(model: OnnxModel, scope: Scope, options: PlanGraphOptions): BodyPlan[] {
  return scope.graph.nodes.flatMap((node) =>
    namedBodies(node).flatMap(({ name, body }): BodyPlan[] => {
      const path = `${scope.path}${node.opType}(${node.name || node.outputs[0]}) ${name}`;
      const initializers = new Map([...scope.graph.initializers, ...body.initializers]);
      const inner = { ...body, initializers };
      const read = namesReadBy({
        ...node,
        inputs: [],
        attributes: new Map([[name, graphOf(body)]]),
      });
      const captured = [...read].flatMap((name) => scope.outer.get(name) ?? []);
      const whole = { ...inner, inputs: [...body.inputs, ...captured] };
      const plan = planned(model, whole, options);
      const outer = new Map([...scope.outer, ...infosOf(body)]);
      return [
        { name: path, nodes: countNodes(body), ...plan && { plan } },
        ...bodyPlans(model, { graph: inner, path: `${path} / `, outer }, options),
      ];
    })
  );
}

function graphOf(value: OnnxGraph) {
  return { kind: "graph", value } as const;
}

/** A body as a graph of its own, if its sizes are declared. */
function planned(
  model: OnnxModel,
  graph: OnnxGraph,
  { onPass: _, ...options }: PlanGraphOptions,
): GraphPlan | undefined {
  try {
    return planGraph({ ...model, graph }, options);
  } catch {
    // Whatever is missing or does not fit is known in a run, where it is checked.
    return undefined;
  }
}

function countNodes({ nodes }: OnnxGraph): number {
  return nodes.reduce(
    (sum, node) => sum + 1 + bodiesOf(node).reduce((inner, body) => inner + countNodes(body), 0),
    0,
  );
}

function infosOf({ inputs, outputs, values }: OnnxGraph): Map<string, OnnxValueInfo> {
  return new Map([...values, ...[...inputs, ...outputs].map((info) => [info.name, info] as const)]);
}
