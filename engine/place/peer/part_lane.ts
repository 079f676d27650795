// One of the runs of a peer's part that may be under way at once: what goes to the peer and what comes back has memory of
// its own, so the next run is asked for before the peer has answered this one, and it never waits for the way between.

import { compile, type DimEnv, product } from "../../graph/dim/mod.ts";
import type { HostData, Value } from "../../graph/graph.ts";
import { hostArray } from "../../ops/host_tensor.ts";
import type { Plan } from "../../plan/plan.ts";
import { maximumOf } from "../../plan/sizes.ts";
import type { BestLogits, Lane, RankedWish } from "../../run/backend.ts";
import { createPlanUse, type PlanUse } from "../../run/plan_use.ts";
import type { Message } from "./channel.ts";
import type { Asked } from "./line.ts";

/** A lane, and what ends it. */
export interface PartLane extends Lane, Pick<PlanUse, "dispose"> {}

/** Makes one. */
export function createPartLane(
  { graph, limits, ...plan }: Plan,
  { isRanked, run, free }: {
    /** Whether the best of rows are found instead of an only output. */
    readonly isRanked: boolean;
    /** Asks the peer for a run. */
    readonly run: (header: Message["header"], asked: Asked<void>) => Promise<void>;
    readonly free: () => void;
  },
): PartLane {
  const found: BestLogits[] = [];
  const hold = (value: Value) =>
    hostArray(value.dtype, { count: maximumOf(product(value.shape), limits) });
  const data = new Map([...graph.inputs, ...graph.outputs].map((value) => [value.id, hold(value)]));
  const dataOf = ({ id }: Value) => data.get(id)!;
  const use = createPlanUse({ graph, limits, ...plan }, { input: dataOf, output: dataOf, free });
  const ranges = (values: readonly Value[]) =>
    values.map((value) => {
      const range = rangeOf(value), own = dataOf(value);
      return (bindings: DimEnv) => range(own, bindings);
    });
  const inputs = ranges(graph.inputs), outputs = ranges(graph.outputs);
  const rowsOf = isRanked ? compile(graph.outputs[0]!.shape[0]!) : undefined;
  return {
    input: use.input,
    output: use.output,
    dispose: use.dispose,
    best: (row) => found[row],
    isGone: (row) => found[row] !== undefined,
    run(bindings, wish) {
      use.checkRun(bindings);
      found.length = 0;
      const best = rowsOf && wish && bestOf(wish, rowsOf(bindings));
      return run({ bindings, best }, {
        bytes: inputs.map((take) => take(bindings)),
        take: ({ header, bytes }) => {
          if (header.found) return void found.push(...foundOf(header.found as FoundRow[]));
          let at = 0;
          for (const output of outputs) {
            const own = output(bindings);
            own.set(bytes.subarray(at, at += own.length));
          }
        },
      });
    },
  };
}

/** The bytes of a value in a run, of memory for the longest. */
export function rangeOf({ shape }: Value): (data: HostData, bindings: DimEnv) => Uint8Array {
  const count = compile(product(shape));
  return ({ buffer, byteOffset, BYTES_PER_ELEMENT }, bindings) =>
    new Uint8Array(buffer, byteOffset, count(bindings) * BYTES_PER_ELEMENT);
}

/** The best values of a row, as a peer writes them. */
export type FoundRow = readonly (readonly [id: number, logit: number])[];

/** How many are wanted of each row; undefined if one is wanted whole. */
function bestOf({ best }: RankedWish, rows: number): readonly number[] | undefined {
  const wanted = [...best.subarray(0, rows)];
  return wanted.every((count) => count > 0) ? wanted : undefined;
}

function foundOf(rows: readonly FoundRow[]): BestLogits[] {
  return rows.map((row) => ({
    ids: Uint32Array.from(row, ([id]) => id),
    // What JSON has no number for.
    logits: Float32Array.from(row, ([, logit]) => logit ?? NaN),
    count: row.length,
  }));
}
