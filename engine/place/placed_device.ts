// Several devices as one: a backend that cuts what it is to make ready by a placement, lets each part be rewritten for the
// device that computes it, and runs them together. Who loads a model through it sees a device like any other.

import { ResourceError } from "../errors.ts";
import type { Graph, Node } from "../graph/graph.ts";
import type { Plan } from "../plan/plan.ts";
import { optimize } from "../plan/passes.ts";
import type { PassContext } from "../plan/passes/pass.ts";
import { plan as planGraph } from "../plan/planner.ts";
import type { Backend, PreparedPlan, PrepareOptions } from "../run/backend.ts";
import type { Device } from "../run/devices.ts";
import { cutPlan, limitsOf, type PlannedPart } from "../run/parts/cut.ts";
import { partSizes, type StateShares } from "../run/parts/part_states.ts";
import { prepareParts } from "../run/parts/run_parts.ts";
import { distinctWeights } from "../run/plan_weights.ts";
import { stateBytes, type StateSizes } from "../run/pages/groups.ts";
import { createReferenceBackend } from "../run/reference/reference_backend.ts";
import { lowerTransfers } from "./lower_transfers.ts";
import { HOST, placeGraph } from "./place_graph.ts";
import { type Placement, placeNodes } from "./rules.ts";

/** A device of a placement. */
export interface Member {
  readonly name: string;
  readonly device: Device;
  /** Of a device in another process, which makes its parts ready itself. */
  readonly peer?: Peer;
}

/** What another process is told of a model. */
export interface PeerRequest {
  readonly rules: Placement["rules"];
  /** Which device of the rules it is. */
  readonly device: number;
  readonly precision: string;
  /** Path of the model, for processes of this machine. */
  readonly model: string | undefined;
}

/** How a part is made ready in another process. */
export interface PeerPart {
  /** Its number among the parts of the cut. */
  readonly part: number;
  readonly options: PrepareOptions;
  /** Runs that may be under way at once; with several the part has lanes of its own. */
  readonly lanes: number;
}

/** A device in another process. */
export interface Peer {
  /** Lets it cut the model, too. @throws {DeviceError} If it has another model, or is of another version. */
  begin(request: PeerRequest & { readonly cut: CutModel }): Promise<void>;
  /** Lets it make a part ready. */
  prepare(part: PlannedPart<number>, how: PeerPart): Promise<PreparedPlan>;
  /** Whether nothing can be asked of it any more. */
  readonly isGone: boolean;
  /**
   * Puts another process in its place, with the same parts and slots, and no rows in them.
   *
   * @throws {DeviceError} If there is none.
   */
  replace(): Promise<void>;
  /** Ends the connection. */
  close(): void;
}

/** Most bytes of weights, caches and activations. */
export interface Budgets {
  /** Of each device that is not this process's memory. */
  readonly device?: number | undefined;
  /** Of those that are, together. */
  readonly host?: number | undefined;
}

/** What a placed device is made of. */
export interface PlacedOptions {
  readonly members: readonly Member[];
  /** The rules for a graph; the devices are the members. */
  readonly rulesOf: (
    graph: Graph,
    fits: Fits,
  ) => Pick<Placement, "rules"> & { readonly note?: string };
  readonly precision: PassContext["precision"];
  readonly budgets?: Budgets;
  /** Runs that may be under way at once; default 1. */
  readonly lanes?: number;
  /** So many of them keep all groups at work; default: all. */
  readonly leastLanes?: number;
}

/** Bytes that a placement takes, by member. */
export type Fits = (rules: Placement["rules"]) => readonly PlacedBytes[];

/** Bytes of a member's parts. */
export interface PlacedBytes {
  readonly weights: number;
  readonly states: number;
  readonly activations: number;
}

/** A plan over several devices. */
export interface CutModel {
  readonly parts: readonly PlannedPart<number>[];
  readonly states: StateShares;
}

/**
 * Cuts a plan by rules.
 *
 * @throws {RangeError} If they leave nodes out. @throws {UnsupportedError} If a group cannot share what is placed on it.
 */
export function cutByRules(plan: Plan, { rules }: Pick<Placement, "rules">): CutModel {
  const { limits, policy } = plan;
  const { graph, partition, states } = lowerTransfers(
    placeGraph(plan.graph, placeNodes(plan.graph, rules)),
  );
  const places = [...new Set(partition.values())].sort((a, b) => b - a);
  const whole = planGraph(graph, { limits: limitsOf(graph, limits), policy });
  return { parts: cutPlan(whole, { places: places.toReversed(), partition, mayWait }), states };
}

/** What every device computes for itself is computed with what needs it. */
function mayWait(nodes: readonly Node[]): boolean {
  return nodes.every(({ op, inputs }) =>
    op !== "all_reduce" &&
    inputs.every((value) => value?.role !== "weight" && value?.role !== "state")
  );
}

/** Bytes of weights, caches and activations by index of a device. */
export function placedBytes(
  plan: Plan,
  { parts, states }: CutModel,
  { sizes, count }: { readonly sizes: StateSizes; readonly count: number },
): PlacedBytes[] {
  return Array.from({ length: count }, (_, device): PlacedBytes => {
    const own = parts.filter(({ place }) => place === device);
    const sum = (bytesOf: (part: Plan) => number) =>
      own.reduce((total, { plan }) => total + bytesOf(plan), 0);
    return {
      weights: sum((part) =>
        distinctWeights(part).values().reduce((bytes, { tensor }) => bytes + tensor!.byteLength, 0)
      ),
      states: sum(({ graph }) => {
        const own = partSizes(plan.graph, { part: graph, sizes, shares: states });
        return stateBytes(graph, own).values().reduce((bytes, one) => bytes + one, 0);
      }),
      activations: sum(({ arenaBytes }) => arenaBytes),
    };
  });
}

/** One less than the most chunks in which the rows of a step go through groups of devices. */
const CHUNK_LANES = 7;

/** Makes the device. */
export function createPlacedDevice(
  { members, rulesOf, precision, budgets = {}, lanes = 1, leastLanes = lanes }: PlacedOptions,
): Device {
  const main = members.find(({ device }) => !device.inHostMemory) ?? members[0]!;

  async function prepare(plan: Plan, options: PrepareOptions): Promise<PreparedPlan> {
    try {
      return await prepareAll(plan, options);
    } catch (error) {
      for (const { peer } of members) peer?.close();
      throw error;
    }
  }

  async function prepareAll(plan: Plan, options: PrepareOptions): Promise<PreparedPlan> {
    const fits: Fits = (rules) =>
      placedBytes(plan, cutByRules(plan, { rules }), { sizes: options, count: members.length });
    const { rules, note } = rulesOf(plan.graph, fits);
    const cut = cutByRules(plan, { rules });
    const bytes = placedBytes(plan, cut, { sizes: options, count: members.length });
    checkBudgets(members, bytes, budgets);
    await Promise.all(
      members.map(({ peer }, device) =>
        peer?.begin({ rules, device, precision, model: plan.graph.name, cut })
      ),
    );
    const all = lanes > 1 ? lanes + CHUNK_LANES : 1;
    const prepared = await prepareParts(plan, {
      ...{ parts: cut.parts, states: cut.states, options, lanes: all },
      stageOf: stagesOf(cut.parts, rules),
      prepare: async (part, own) => {
        if (part.place === HOST) return await createReferenceBackend().prepare(part.plan, own);
        const { device, peer } = members[part.place]!;
        if (peer) {
          const number = cut.parts.indexOf(part);
          return await peer.prepare(part, { part: number, options: own, lanes: all });
        }
        return await device.backend.prepare(forDevice(part.plan, { device, precision }), own);
      },
    });
    return {
      ...prepared,
      ...prepared.lanes && {
        ...{ lanes: prepared.lanes.slice(0, lanes), leastLanes },
        chunkLanes: prepared.lanes.slice(lanes),
      },
      notes: [...note ? [note] : [], ...prepared.notes],
      ...members.some(({ peer }) => peer) && { replace: () => replaceGone(members) },
    };
  }

  const backend: Backend = { name: main.device.backend.name, kernels: {}, prepare };
  return {
    inHostMemory: members.every(({ device }) => device.inHostMemory),
    loadsAside: members.every(({ device }) => device.loadsAside),
    sharesArenas: false,
    debugs: false,
    padsSteps: false,
    wantsForms: members.some(({ device }) => device.wantsForms),
    reusesInputs: false,
    picksRowsEarly: false,
    fusesNeighbours: false,
    // Parts are rewritten for the devices that compute them.
    hasKernel: () => false,
    takes: () => false,
    async computesAny(ops) {
      const all = await Promise.all(members.map(({ device }) => device.computesAny(ops)));
      return all.every((computes) => computes);
    },
    backend,
  };
}

/** Whether peers were gone, and others are in their places. */
async function replaceGone(members: readonly Member[]): Promise<boolean> {
  const gone = members.flatMap(({ peer }) => peer?.isGone ? [peer] : []);
  const replaced = await Promise.allSettled(gone.map((peer) => peer.replace()));
  return gone.length > 0 && replaced.every(({ status }) => status === "fulfilled");
}

/** By part, the first device of its group: a group works on one run at a time, and its sums are part of that. */
function stagesOf(
  parts: readonly PlannedPart<number>[],
  rules: Placement["rules"],
): (part: PlannedPart<number>) => number {
  const makers = new Map(
    parts.flatMap(({ place, plan: { graph } }) =>
      graph.outputs.map(({ id }) => [id, place] as const)
    ),
  );
  const firstOf = (place: number) =>
    Math.min(
      ...rules.filter(({ devices }) => devices.includes(place)).flatMap(({ devices }) => devices),
    );
  return ({ place, plan: { graph } }) =>
    firstOf(place === HOST ? makers.get(graph.inputs[0]!.id)! : place);
}

/** A part in the form in which its device computes it. */
export function forDevice(
  { graph, limits, policy }: Plan,
  { device, precision }: Pick<Member, "device"> & Pick<PassContext, "precision">,
): Plan {
  const own = optimize(graph, {
    context: {
      precision,
      hasKernel: (op) => device.hasKernel(op),
      takes: (draft) => device.takes(draft),
      picksRowsEarly: device.picksRowsEarly,
      fusesNeighbours: device.fusesNeighbours,
    },
  });
  return planGraph(own, { limits: limitsOf(own, limits), policy });
}

/** All that a member holds. */
export function totalOf({ weights, states, activations }: PlacedBytes): number {
  return weights + states + activations;
}

/** @throws {ResourceError} Naming the device that has too little, and how much would do. */
function checkBudgets(
  members: readonly Member[],
  bytes: readonly PlacedBytes[],
  { device = Infinity, host = Infinity }: Budgets,
): void {
  let onHost = 0;
  for (const [i, member] of members.entries()) {
    const total = totalOf(bytes[i]!);
    if (member.device.inHostMemory) onHost += total;
    else if (total > device) {
      const { weights, states, activations } = bytes[i]!;
      throw new ResourceError(
        `device ${member.name} takes ${total} bytes (weights ${weights}, keys and values ${states}, activations ` +
          `${activations}), and maxDeviceBytes is ${device}`,
        { remedy: `With maxDeviceBytes ${total} it fits` },
      );
    }
  }
  if (onHost <= host) return;
  throw new ResourceError(
    `what lies on the host takes ${onHost} bytes, and maxHostBytes is ${host}`,
    { remedy: `With maxHostBytes ${onHost} it fits` },
  );
}
