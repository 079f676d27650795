// The parts of a plan as one prepared plan: each is made ready by the backend of its place, and a step runs them in an order
// that never waits in vain: parts of different places that need nothing of each other run at the same time, if their
// backends compute beside this thread. Whoever reads an input or makes a value first holds it; what others read of it is
// copied to them, in host memory, before they run. Slots are the same in all parts (part_states.ts).
//
// With several lanes, several runs are under way: each has its own copy of what is given, made and passed on, and takes a
// place as soon as the one before it has left it; a part that has lanes itself takes its runs as they come. With one lane, what parts of a device make for each other stays there
// (held_links.ts).

import { compile, type DimEnv, product } from "../../graph/dim/mod.ts";
import type { HostData, Node, Value } from "../../graph/graph.ts";
import { hostArray } from "../../ops/host_tensor.ts";
import type { Plan } from "../../plan/plan.ts";
import { maximumOf } from "../../plan/sizes.ts";
import type { Lane, PreparedPlan, PrepareOptions, RankedWish } from "../backend.ts";
import { loadHostWeights } from "../host_weights.ts";
import { createPlanUse } from "../plan_use.ts";
import type { HeldTransfers } from "../held.ts";
import { type HeldLinks, holderOfParts, linkParts } from "./held_links.ts";
import { LaneBest } from "./lane_best.ts";
import { distinctWeights } from "../plan_weights.ts";
import type { PlannedPart } from "./cut.ts";
import { partSizes, type StateShares, statesOfParts } from "./part_states.ts";

/** A plan in parts. */
export interface PartedPlan<P extends PreparedPlan> extends PreparedPlan {
  readonly notes: readonly string[];
  readonly kernels: readonly string[];
  readonly hostNodes: readonly Node[];
  readonly parts: readonly P[];
}

/** How parts are made ready. */
export interface PartsOptions<Place, P extends PreparedPlan> {
  readonly parts: readonly PlannedPart<Place>[];
  readonly options: PrepareOptions;
  /** Makes one ready at its place. */
  readonly prepare: (part: PlannedPart<Place>, options: PrepareOptions) => Promise<P>;
  /** States of parts that have a share of one of the whole. */
  readonly states?: StateShares;
  /** Runs that may be under way at once; default 1. */
  readonly lanes?: number;
  /**
   * With several lanes: what a run holds while it is there. A group of devices that work on a run together is held as
   * one until the run goes on to the next. Default: the part's place.
   */
  readonly stageOf?: (part: PlannedPart<Place>) => unknown;
}

/** A part that runs. */
interface ReadyPart<P extends PreparedPlan> {
  /** What a run holds meanwhile; undefined: nothing, because the part has lanes. */
  readonly stage: unknown;
  readonly plan: Plan;
  readonly prepared: P;
  readonly symbols: readonly string[];
  /** Parts of one level need nothing of each other. */
  readonly level: number;
}

/** Makes the parts of a plan ready, in order. */
export async function prepareParts<Place, P extends PreparedPlan>(
  plan: Plan,
  { parts, options, prepare, states = new Map(), lanes = 1, stageOf = ({ place }) => place }:
    PartsOptions<Place, P>,
): Promise<PartedPlan<P>> {
  const { meanwhile, onProgress, ranked, ...rest } = options;
  const ready: ReadyPart<P>[] = [];
  const levels = levelsOf(parts);
  const bytes = parts.map(({ plan }) => bytesOf([...distinctWeights(plan).values()]));
  const totalBytes = bytes.reduce((sum, own) => sum + own, 0);
  let before = 0;
  try {
    for (const [i, part] of parts.entries()) {
      const { graph, limits } = part.plan;
      const isHead = graph.outputs.some(({ name }) => name === ranked?.output) &&
        (lanes === 1 || graph.outputs.length === 1);
      const prepared = await prepare(part, {
        ...rest,
        ...partSizes(plan.graph, { part: graph, sizes: options, shares: states }),
        ...isHead && { ranked },
        ...i === 0 && meanwhile && { meanwhile },
        ...onProgress && {
          onProgress: ({ loadedBytes }) =>
            onProgress({ loadedBytes: before + loadedBytes, totalBytes }),
        },
      });
      ready.push({
        ...{ plan: part.plan, prepared, level: levels[i]! },
        stage: prepared.lanes ? undefined : stageOf(part),
        symbols: Object.keys(limits),
      });
      before += bytes[i]!;
    }
    const given = await loadGiven(plan, rest);
    const made = Array.from({ length: lanes }, (_, lane) =>
      makeLane(plan, ready, {
        given,
        of: (prepared) => lanes === 1 ? prepared : prepared.lanes?.[lane],
      }));
    const links = lanes === 1 ? await linkParts(plan, ready) : undefined;
    return assemble(plan, ready, { lanes: made, states, ranked: ranked?.output, links });
  } catch (error) {
    for (const { prepared } of ready) prepared.dispose();
    throw error;
  }
}

/** By part, one more than the most of those before it at its place, or whose values it reads. */
export function levelsOf<Place>(parts: readonly PlannedPart<Place>[]): number[] {
  const makers = new Map<number, number>(), places = new Map<Place, number>();
  const levels: number[] = [];
  parts.forEach(({ place, plan: { graph } }, i) => {
    const before = graph.inputs.flatMap(({ id }) => makers.get(id) ?? []);
    const last = places.get(place);
    levels.push(
      1 + Math.max(-1, ...before.map((at) => levels[at]!), last === undefined ? -1 : levels[last]!),
    );
    for (const { id } of graph.outputs) makers.set(id, i);
    places.set(place, i);
  });
  return levels;
}

function bytesOf(weights: readonly Value[]): number {
  return weights.reduce((sum, { tensor }) => sum + tensor!.byteLength, 0);
}

/** By name, constants and weights that are results as they are. */
async function loadGiven(
  { graph }: Plan,
  options: Pick<PrepareOptions, "signal">,
): Promise<Map<string, HostData>> {
  const weights = graph.outputs.filter(({ role }) => role === "weight");
  const loaded = await loadHostWeights(weights, options);
  return new Map(graph.outputs.flatMap(({ id, name, role, data }) => {
    const own = role === "constant" ? data as HostData : loaded.get(id);
    return own ? [[name, own] as const] : [];
  }));
}

type Copy = (bindings: DimEnv) => void;

/** A part as a lane runs it. */
interface LanePart {
  /** The part, or the lane of it that is this one's alone. */
  readonly runner: Lane;
  readonly isOwn: boolean;
  /** What is copied before a run, by input, and behind it. */
  readonly feeds: readonly { readonly name: string; readonly feed: Copy }[];
  readonly drains: readonly Copy[];
}

interface LaneParts {
  /** Inputs and outputs of the whole plan, by name. */
  readonly named: ReadonlyMap<string, HostData>;
  readonly parts: readonly LanePart[];
}

/** A lane that works in the memory of what is its own of the parts, and in memory of its own beside the others. */
function makeLane(
  plan: Plan,
  ready: readonly ReadyPart<PreparedPlan>[],
  { given, of }: {
    readonly given: ReadonlyMap<string, HostData>;
    readonly of: (prepared: PreparedPlan) => Lane | undefined;
  },
): LaneParts {
  const held = new Map<number, HostData>(), named = new Map(given);
  const hold = ({ id, name }: Value, data: HostData): HostData => {
    held.set(id, data);
    if (!named.has(name)) named.set(name, data);
    return data;
  };
  const place = (value: Value, { limits }: Plan): HostData =>
    held.get(value.id) ??
      hold(value, hostArray(value.dtype, { count: maximumOf(product(value.shape), limits) }));
  const parts = ready.map(({ prepared, plan: own }): LanePart => {
    const { inputs, outputs } = own.graph, lane = of(prepared);
    if (!lane) {
      return {
        ...{ runner: prepared, isOwn: false },
        feeds: inputs.map((value) => ({
          name: value.name,
          feed: copy(place(value, own), prepared.input(value.name), value),
        })),
        drains: outputs.map((value) => copy(prepared.output(value.name), place(value, own), value)),
      };
    }
    const feeds = inputs.flatMap((value) => {
      const { name } = value, target = lane.input(name), source = held.get(value.id);
      if (source) return [{ name, feed: copy(source, target, value) }];
      hold(value, target);
      return [];
    });
    for (const value of outputs) hold(value, lane.output(value.name));
    return { runner: lane, isOwn: true, feeds, drains: [] };
  });
  return { named: withInputs(plan, named), parts };
}

/** Inputs that no part reads are there, too. */
function withInputs({ graph, limits }: Plan, named: Map<string, HostData>): Map<string, HostData> {
  for (const { name, dtype, shape } of graph.inputs) {
    if (named.has(name)) continue;
    named.set(name, hostArray(dtype, { count: maximumOf(product(shape), limits) }));
  }
  return named;
}

function copy(source: HostData, target: HostData, { shape }: Value): Copy {
  const count = compile(product(shape));
  return (bindings) =>
    (target as Uint8Array).set(source.subarray(0, count(bindings)) as Uint8Array);
}

/** A lane with what its plan's use is checked and ended by. */
interface OwnLane extends Lane {
  checkRun(bindings: DimEnv): void;
  dispose(): void;
}

function assemble<P extends PreparedPlan>(
  plan: Plan,
  ready: readonly ReadyPart<P>[],
  { lanes, states, ranked, links }: {
    readonly lanes: readonly LaneParts[];
    readonly states: StateShares;
    readonly ranked: string | undefined;
    /** Of a single lane. */
    readonly links: HeldLinks | undefined;
  },
): PartedPlan<P> {
  const parts = ready.map(({ prepared }) => prepared);
  const makers = new Map(
    ready.flatMap(({ prepared, plan: { graph } }) =>
      graph.outputs.map(({ name }) => [name, prepared] as const)
    ),
  );
  const head = ranked === undefined ? undefined : makers.get(ranked);
  const free = () => {
    links?.dispose();
    parts.forEach((part) => part.dispose());
  };
  const run = links && runner(ready, lanes[0]!, { head, links });
  const turns = createTurns();
  const [{ checkRun, ...first }, ...others] = lanes.map(({ named, parts: own }, i): OwnLane => {
    const dataOf = ({ name }: Value) => named.get(name)!;
    const use = createPlanUse(plan, {
      input: dataOf,
      output: dataOf,
      free: i === 0 ? free : () => {},
    });
    const headPart = own.find((_, at) => ready[at]!.prepared === head);
    const best = headPart?.isOwn ? headPart.runner : new LaneBest();
    const runOwn = run
      ? (bindings: DimEnv, wish?: RankedWish, signal?: AbortSignal) =>
        run(bindings, { wish, signal })
      : turnRunner(ready, { lane: own, take: turns, head, best });
    return {
      input: use.input,
      output: use.output,
      run(bindings, wish, signal) {
        use.checkRun(bindings);
        return runOwn(bindings, wish, signal);
      },
      best: (row) => best.best?.(row),
      isGone: (row) => best.isGone?.(row) ?? false,
      ...{ checkRun: use.checkRun, dispose: use.dispose },
    };
  }) as [OwnLane, ...OwnLane[]];
  return {
    ...{ plan, parts },
    threads: Math.max(...parts.map(({ threads = 1 }) => threads)),
    notes: [...new Set(parts.flatMap(({ notes = [] }) => notes))],
    kernels: parts.flatMap(({ kernels = [] }) => kernels),
    hostNodes: parts.flatMap(({ hostNodes = [] }) => hostNodes),
    memory: memoryOf(parts),
    ...statesOfParts(plan, {
      parts: ready.map(({ prepared, plan: { graph } }) => ({ prepared, graph })),
      shares: states,
    }),
    ...first,
    ...others.length > 0 && { lanes: [first, ...others] },
    output(name, rows) {
      const view = first.output(name);
      // A device may have to fetch what it has found the best of only.
      return (lanes.length === 1 ? makers.get(name)?.output(name, rows) : undefined) ?? view;
    },
    ...lanes.length === 1 && {
      best: (row) => head?.best?.(row),
      isGone: (row) => head?.isGone?.(row) ?? false,
      keepsRows: head?.keepsRows ?? false,
    },
    ...run && {
      holder: holderOfParts(ready, (bindings, transfers, signal) => {
        checkRun(bindings);
        return run(bindings, { transfers, signal });
      }),
    },
    profile: () => parts.flatMap((part) => part.profile?.() ?? []),
    dispose() {
      for (const lane of others) lane.dispose();
      first.dispose();
    },
  };
}

function memoryOf(parts: readonly PreparedPlan[]): PreparedPlan["memory"] {
  const sum = (of: (memory: PreparedPlan["memory"]) => number) =>
    parts.reduce((total, { memory }) => total + of(memory), 0);
  return {
    weights: sum(({ weights }) => weights),
    arena: sum(({ arena }) => arena),
    statePerSlot: sum(({ statePerSlot }) => statePerSlot),
    states: sum(({ states }) => states),
    other: sum(({ other }) => other),
    textures: sum(({ textures = 0 }) => textures),
  };
}

function ownBindings(symbols: readonly string[], bindings: DimEnv): DimEnv {
  return Object.fromEntries(symbols.map((name) => [name, bindings[name]!]));
}

/** Indices of the parts of each level, first those that compute beside this thread. */
function byLevel(ready: readonly ReadyPart<PreparedPlan>[]): number[][] {
  const groups: number[][] = [];
  ready.forEach(({ level }, i) => (groups[level] ??= []).push(i));
  const aside = (i: number) => Number(ready[i]!.prepared.runsAside ?? false);
  return groups.map((group) => group.sort((a, b) => aside(b) - aside(a)));
}

/** What a run may have beside its sizes. */
interface RunMore {
  readonly wish?: RankedWish | undefined;
  readonly transfers?: HeldTransfers;
  readonly signal?: AbortSignal | undefined;
}

/** Runs the parts level by level; waits only for those that have to be waited for. */
function runner<P extends PreparedPlan>(
  ready: readonly ReadyPart<P>[],
  lane: LaneParts,
  { head, links }: { readonly head: P | undefined; readonly links: HeldLinks },
): (bindings: DimEnv, more?: RunMore) => void | Promise<void> {
  const levels = byLevel(ready);
  function runFrom(first: number, bindings: DimEnv, more: RunMore): void | Promise<void> {
    for (let level = first; level < levels.length; level++) {
      const { signal } = more;
      if (level > first) signal?.throwIfAborted();
      let waiting: Promise<void>[] | undefined;
      for (const i of levels[level]!) {
        const { prepared, symbols } = ready[i]!;
        const own = ownBindings(symbols, bindings);
        const held = links.transfersOf(i, more.transfers);
        for (const { name, feed } of lane.parts[i]!.feeds) {
          if (!held?.inputs.has(name)) feed(bindings);
        }
        const done = held
          ? prepared.holder!.run(own, held, signal)
          : prepared.run(own, prepared === head ? more.wish : undefined, signal);
        if (done) (waiting ??= []).push(done);
      }
      if (waiting) return allOf(waiting).then(() => runFrom(level + 1, bindings, more));
    }
  }
  return (bindings, more = {}) => runFrom(0, bindings, more);
}

/** Waits for all, also where one has failed: nothing goes on behind an error. */
async function allOf(waiting: readonly Promise<void>[]): Promise<void> {
  const [only] = waiting;
  if (waiting.length === 1) return await only;
  for (const result of await Promise.allSettled(waiting)) {
    if (result.status === "rejected") throw result.reason;
  }
}

/** Does something at a stage when all that was asked for there before is done. */
type TakeTurn = (stage: unknown, work: () => Promise<void>) => Promise<void>;

function createTurns(): TakeTurn {
  const last = new Map<unknown, Promise<void>>();
  return (stage, work) => {
    const turn = (last.get(stage) ?? Promise.resolve()).then(work);
    last.set(stage, turn.catch(() => {}));
    return turn;
  };
}

/** Levels that a run computes without leaving its stages. */
interface Stay {
  readonly stages: readonly unknown[];
  readonly levels: number[][];
}

function staysOf(ready: readonly ReadyPart<PreparedPlan>[]): Stay[] {
  const stays: Stay[] = [];
  for (const level of byLevel(ready)) {
    // In one order everywhere, so that no two runs wait for each other.
    const held = level.map((i) => ready[i]!.stage).filter((stage) => stage !== undefined);
    const stages = [...new Set(held)].sort();
    const before = stays.at(-1);
    if (before && before.stages.join() === stages.join()) before.levels.push(level);
    else stays.push({ stages, levels: [level] });
  }
  return stays;
}

/** Runs the parts of one lane among several: each in its turn at its stage. */
function turnRunner(
  ready: readonly ReadyPart<PreparedPlan>[],
  { lane, take, head, best }: {
    readonly lane: readonly LanePart[];
    readonly take: TakeTurn;
    /** The part that gives the ranked output. */
    readonly head: PreparedPlan | undefined;
    /** Keeps what that has found, unless the lane has one of its own. */
    readonly best: LaneBest | Lane;
  },
): (bindings: DimEnv, wish?: RankedWish, signal?: AbortSignal) => Promise<void> {
  const stays = staysOf(ready);
  const [output] = head?.plan.graph.outputs ?? [];
  const rowsOf = output && compile(output.shape[0]!);
  async function runPart(i: number, bindings: DimEnv, { wish, signal }: RunMore): Promise<void> {
    const { prepared, symbols } = ready[i]!, { runner, feeds, drains } = lane[i]!;
    for (const { feed } of feeds) feed(bindings);
    const isHead = prepared === head;
    await runner.run(ownBindings(symbols, bindings), isHead ? wish : undefined, signal);
    if (isHead && best instanceof LaneBest) {
      // The only output of such a part.
      if (best.take(prepared, { rows: rowsOf!(bindings), wish })) return;
    }
    for (const drain of drains) drain(bindings);
  }
  return async (bindings, wish, signal) => {
    for (const { stages, levels } of stays) {
      const work = async () => {
        for (const level of levels) {
          signal?.throwIfAborted();
          await allOf(level.map((i) => runPart(i, bindings, { wish, signal })));
        }
      };
      await stages.reduceRight<() => Promise<void>>(
        (inner, stage) => () => take(stage, inner),
        work,
      )();
    }
  };
}
