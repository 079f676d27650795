// The parts of a plan as one prepared plan: each is made ready by the backend of its place, and a step runs them one behind
// the other. Whoever reads an input or makes a value first holds it; what others read of it is copied to them, in host
// memory, before they run. Slots are the same in all parts; a saved session is that of the whole graph, so it
// does not depend on how it was cut. Left out: values that the host never looks at still come back between
// two parts of a GPU.

import { joinBytes } from "../../byte_source.ts";
import { compile, type DimEnv, product } from "../../graph/dim/mod.ts";
import type { HostData, Node, Value } from "../../graph/graph.ts";
import { hostArray } from "../../ops/host_tensor.ts";
import type { Plan } from "../../plan/plan.ts";
import { maximumOf } from "../../plan/sizes.ts";
import type {
  PageMemory,
  PreparedPlan,
  PrepareOptions,
  RankedOutput,
  RankedWish,
} from "../backend.ts";
import { loadHostWeights } from "../host_weights.ts";
import { createPlanUse } from "../plan_use.ts";
import { distinctWeights } from "../plan_weights.ts";
import { groupsOfPart, pageGroups, sizesOfPart } from "../pages/groups.ts";
import { rowBytes, splitBytes } from "../states.ts";
import type { PlannedPart } from "./cut.ts";

/** A part that runs. */
interface ReadyPart<P extends PreparedPlan> {
  readonly prepared: P;
  readonly symbols: readonly string[];
  /** Copy what others hold. */
  readonly feeds: readonly ((bindings: DimEnv) => void)[];
}

/** A plan in parts. */
export interface PartedPlan<P extends PreparedPlan> extends PreparedPlan {
  readonly notes: readonly string[];
  readonly kernels: readonly string[];
  readonly hostNodes: readonly Node[];
  readonly parts: readonly P[];
}

/** Makes the parts of a plan ready, in order. */
export async function prepareParts<Place, P extends PreparedPlan>(
  plan: Plan,
  { parts, options, prepare }: {
    readonly parts: readonly PlannedPart<Place>[];
    readonly options: PrepareOptions;
    /** Makes one ready at its place. */
    readonly prepare: (part: PlannedPart<Place>, options: PrepareOptions) => Promise<P>;
  },
): Promise<PartedPlan<P>> {
  const { graph, limits } = plan;
  const { meanwhile, onProgress, ...rest } = options;
  const held = new Map<number, HostData>();
  const ready: ReadyPart<P>[] = [];
  const bytes = parts.map(({ plan }) => bytesOf([...distinctWeights(plan).values()]));
  const totalBytes = bytes.reduce((sum, own) => sum + own, 0);
  let before = 0;
  try {
    for (const [i, part] of parts.entries()) {
      const prepared = await prepare(part, {
        ...rest,
        ...sizesOfPart(graph, { part: part.plan.graph, sizes: options }),
        ...i === 0 && meanwhile && { meanwhile },
        ...onProgress && {
          onProgress: ({ loadedBytes }) =>
            onProgress({ loadedBytes: before + loadedBytes, totalBytes }),
        },
      });
      const { inputs, outputs } = part.plan.graph;
      const feeds: ReadyPart<P>["feeds"][number][] = [];
      ready.push({ prepared, feeds, symbols: Object.keys(part.plan.limits) });
      for (const value of inputs) {
        const target = prepared.input(value.name), source = held.get(value.id);
        if (source) feeds.push(feed(source, target, value));
        else held.set(value.id, target);
      }
      for (const { id, name } of outputs) held.set(id, prepared.output(name));
      before += bytes[i]!;
    }
    for (const { id, dtype, shape } of graph.inputs) {
      if (!held.has(id)) {
        held.set(id, hostArray(dtype, { count: maximumOf(product(shape), limits) }));
      }
    }
    for (const [id, data] of await loadGiven(plan, rest)) held.set(id, data);
  } catch (error) {
    for (const { prepared } of ready) prepared.dispose();
    throw error;
  }
  return assemble(plan, ready, { held, ranked: options.ranked });
}

function bytesOf(weights: readonly Value[]): number {
  return weights.reduce((sum, { tensor }) => sum + tensor!.byteLength, 0);
}

/** Constants and weights that are results as they are. */
async function loadGiven(
  { graph }: Plan,
  options: Pick<PrepareOptions, "signal">,
): Promise<Map<number, HostData>> {
  const loaded = await loadHostWeights(
    graph.outputs.filter(({ role }) => role === "weight"),
    options,
  );
  for (const { id, role, data } of graph.outputs) {
    if (role === "constant") loaded.set(id, data as HostData);
  }
  return loaded;
}

function feed(source: HostData, target: HostData, { shape }: Value): (bindings: DimEnv) => void {
  const count = compile(product(shape));
  return (bindings) =>
    (target as Uint8Array).set(source.subarray(0, count(bindings)) as Uint8Array);
}

function assemble<P extends PreparedPlan>(
  plan: Plan,
  ready: readonly ReadyPart<P>[],
  { held, ranked }: {
    readonly held: ReadonlyMap<number, HostData>;
    readonly ranked: RankedOutput | undefined;
  },
): PartedPlan<P> {
  const parts = ready.map(({ prepared }) => prepared);
  const makers = new Map(
    parts.flatMap((part) => part.plan.graph.outputs.map(({ name }) => [name, part] as const)),
  );
  const head = ranked && makers.get(ranked.output);
  const heldOf = ({ id }: Value) => held.get(id)!;
  const use = createPlanUse(plan, {
    ...{ input: heldOf, output: heldOf },
    free: () => parts.forEach((part) => part.dispose()),
  });

  /** Runs the parts from one on; waits only for those that have to be waited for. */
  function runFrom(first: number, bindings: DimEnv, wish?: RankedWish): void | Promise<void> {
    for (let i = first; i < ready.length; i++) {
      const { prepared, feeds, symbols } = ready[i]!;
      for (const feed of feeds) feed(bindings);
      const own = Object.fromEntries(symbols.map((name) => [name, bindings[name]!]));
      const done = prepared.run(own, prepared === head ? wish : undefined);
      if (done) return done.then(() => runFrom(i + 1, bindings, wish));
    }
  }

  const sum = (of: (memory: PreparedPlan["memory"]) => number) =>
    parts.reduce((total, { memory }) => total + of(memory), 0);
  return {
    plan,
    parts,
    threads: Math.max(...parts.map(({ threads = 1 }) => threads)),
    notes: [...new Set(parts.flatMap(({ notes = [] }) => notes))],
    kernels: parts.flatMap(({ kernels = [] }) => kernels),
    hostNodes: parts.flatMap(({ hostNodes = [] }) => hostNodes),
    memory: {
      weights: sum(({ weights }) => weights),
      arena: sum(({ arena }) => arena),
      statePerSlot: sum(({ statePerSlot }) => statePerSlot),
      states: sum(({ states }) => states),
      other: sum(({ other }) => other),
      textures: sum(({ textures = 0 }) => textures),
    },
    ...statesOf(plan, parts),
    input: use.input,
    output(name, rows) {
      const view = use.output(name);
      // A device may have to fetch what it has found the best of only.
      return makers.get(name)?.output(name, rows) ?? view;
    },
    run(bindings, wish) {
      use.checkRun(bindings);
      return runFrom(0, bindings, wish);
    },
    best: (row) => head?.best?.(row),
    isGone: (row) => head?.isGone?.(row) ?? false,
    keepsRows: head?.keepsRows ?? false,
    profile: () => parts.flatMap((part) => part.profile?.() ?? []),
    dispose: use.dispose,
  };
}

/** Slots and states: those of the parts, in the order of the whole graph. */
function statesOf(
  { graph }: Plan,
  parts: readonly PreparedPlan[],
): Pick<PreparedPlan, "pages" | "openSlot" | "closeSlot" | "readState" | "writeState"> {
  const pages = pageGroups(graph).map((_, group): PageMemory => {
    const own = parts.flatMap((part) => {
      const at = groupsOfPart(graph, part.plan.graph).indexOf(group);
      return part.pages?.[at] ?? [];
    });
    return {
      map: (at, page) => own.forEach((memory) => memory.map(at, page)),
      copy: (from, to) => own.forEach((memory) => memory.copy(from, to)),
    };
  });
  const arePaged = parts.every(({ pages, plan }) => pages || plan.graph.states.length === 0);
  return {
    ...arePaged && { pages },
    openSlot() {
      // All have the same slots open, so all give the same.
      return parts.map((part) => part.openSlot())[0]!;
    },
    closeSlot(slot) {
      for (const part of parts) part.closeSlot(slot);
    },
    async readState(slot, count) {
      const pieces = new Map<number, Uint8Array>();
      for (const part of parts) {
        const { states } = part.plan.graph;
        if (states.length === 0) continue;
        const own = splitBytes(await part.readState(slot, count), rowBytes(states, count));
        states.forEach(({ id }, i) => pieces.set(id, own[i]!));
      }
      return joinBytes(graph.states.map(({ id }) => pieces.get(id)!));
    },
    async writeState(slot, count, bytes) {
      const own = splitBytes(bytes, rowBytes(graph.states, count));
      const pieces = new Map(graph.states.map(({ id }, i) => [id, own[i]!]));
      for (const part of parts) {
        const { states } = part.plan.graph;
        if (states.length === 0) continue;
        await part.writeState(slot, count, joinBytes(states.map(({ id }) => pieces.get(id)!)));
      }
    },
  };
}
