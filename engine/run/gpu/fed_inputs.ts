// The inputs of runs that feed themselves: those that do not change from run to run, by which a run that is asked for is
// known to be the one that the device has computed.

import type { BufferScope } from "../../../gpu/gpu.ts";
import type { Program } from "../../../gpu/program.ts";
import { compile, type CompiledDim, type DimEnv, equal, product } from "../../graph/dim/mod.ts";
import type { HostData } from "../../graph/graph.ts";
import type { Plan } from "../../plan/plan.ts";
import type { RankedOutput } from "../backend.ts";
import type { Reach } from "./cache_reach.ts";
import type { GpuLogits } from "./logits.ts";
import type { GpuValues } from "./values.ts";

/** What runs are made of whose best values are fed back. */
export interface FedParts {
  readonly scope: BufferScope;
  readonly plan: Plan;
  readonly ranked: RankedOutput;
  readonly values: GpuValues;
  readonly program: Program<DimEnv>;
  readonly reach: Reach;
  readonly logits: GpuLogits;
  /** Ids of the inputs that say the slots of rows. */
  readonly slotInputs: ReadonlySet<number>;
}

/** An input that does not change from run to run. */
export interface ConstantInput {
  readonly data: HostData;
  /** As it was when the runs began. */
  readonly then: HostData;
  readonly count: CompiledDim;
  /** Elements of a row where it has one for each row of a run; 0: it has others. */
  readonly width: number;
  readonly saysSlots: boolean;
}

/** Inputs of a plan whose best values are fed back. */
export interface FedInputs {
  readonly fed: Int32Array;
  readonly counted: Int32Array;
  /** Rows of a run. */
  readonly rowsOf: CompiledDim;
  readonly constants: readonly ConstantInput[];
  /** Rows of a slot: runs behind them would write into those of the next one. */
  readonly capacity: number;
}

/** Finds them; `slotInputs`: ids of those that say the slots of rows. */
export function fedInputs(
  { graph }: Plan,
  { ranked, values, slotInputs }: Pick<FedParts, "ranked" | "values" | "slotInputs">,
): FedInputs {
  const input = (wanted: string) => graph.inputs.find(({ name }) => name === wanted)!;
  const [rows] = input(ranked.fed).shape;
  return {
    fed: values.input(input(ranked.fed)) as Int32Array,
    counted: values.input(input(ranked.counted)) as Int32Array,
    rowsOf: compile(rows!),
    capacity: Math.min(...graph.states.map(({ shape }) => shape[0] as number)),
    constants: graph.inputs
      .filter(({ name }) => name !== ranked.fed && name !== ranked.counted)
      .map((value) => {
        const { shape: [first, ...others] } = value, data = values.input(value);
        const width = first !== undefined && equal(first, rows!) ? Number(product(others)) : 0;
        const saysSlots = slotInputs.has(value.id);
        return { data, then: data.slice(), count: compile(product(value.shape)), width, saysSlots };
      }),
  };
}

/** Notes the constants as they are now. */
export function noteConstants(constants: readonly ConstantInput[]): void {
  for (const { data, then } of constants) (then as Uint8Array).set(data as Uint8Array);
}

/** Whether those that have no row for each row of a run, or all of them, are as they were noted. */
export function areConstant(
  constants: readonly ConstantInput[],
  bindings: DimEnv,
  { rowsToo = false } = {},
): boolean {
  for (const { data, then, count, width } of constants) {
    const elements = width > 0 && !rowsToo ? 0 : count(bindings);
    for (let i = 0; i < elements; i++) if (data[i] !== then[i]) return false;
  }
  return true;
}
