// Sums over teams of neighbouring invocations, the last act of every product of few rows: by shuffles within
// subgroups, and through workgroup memory with a single barrier where a team is larger than one or there are
// none. And the loop by which a team's lanes walk over a row.

import { wgsl } from "../../wgsl.ts";

/** Teams of a workgroup. */
export interface TeamSize {
  /** Invocations of a workgroup. */
  readonly workgroup: number;
  /** Invocations of a team, a power of 2; divides `workgroup`. */
  readonly lanes: number;
  /** Lanes of a subgroup by which sums are shuffled; 0: by workgroup memory. */
  readonly subgroupSize: number;
}

/** Parts of a shader that adds up. */
export interface TeamSum {
  readonly enables: readonly "subgroups"[];
  /** Module scope. */
  readonly declarations: string;
  /**
   * Statements that add up `sum0`, `sum1`, … and call `store(i, first, sum)` for each, `first` being the team's
   * first output. They use `thread`, `lane`, `first` and `tile`, the first output of the workgroup.
   */
  readonly reduce: string;
}

/** What a team adds up. */
export interface TeamSums {
  readonly sums: number;
  /** Outputs of a team. */
  readonly outputs: number;
  /** Results, where they are fewer, and one of them as an expression of sums. */
  readonly results?: number | undefined;
  readonly result?: ((total: (place: SumPlace) => string) => string) | undefined;
}

/** A sum by its number: `first`, and `times` the number of the result, of its row or of its output. */
export interface SumPlace {
  readonly first: number;
  readonly of: "result" | "row" | "output";
  readonly times: number;
}

const OWN_SUM: SumPlace = { first: 0, of: "result", times: 1 };

/** How `sums` variables are added up, where a team makes `outputs` outputs. */
export function teamSum(
  { workgroup, lanes, subgroupSize }: TeamSize,
  { sums, outputs, results = sums, result = (total) => total(OWN_SUM) }: TeamSums,
): TeamSum {
  const variables = Array.from({ length: sums }, (_, i) => `sum${i}`);
  const enables = subgroupSize > 0 ? ["subgroups"] as const : [];
  // Lanes whose sums are in one of them after the shuffles.
  const width = subgroupSize > 0 ? Math.min(lanes, subgroupSize) : 1;
  const shuffles = variables.flatMap((variable) => shuffledSum(variable, width));
  if (width === lanes) {
    const numbers = (i: number) => ({
      result: i,
      row: Math.floor(i / outputs),
      output: i % outputs,
    });
    const total = (i: number) => ({ first, of, times }: SumPlace) =>
      `sum${first + times * numbers(i)[of]}`;
    return {
      enables,
      declarations: "",
      reduce: wgsl`
        ${shuffles}
        if (lane == 0u) {
          ${Array.from({ length: results }, (_, i) => `store(${i}u, first, ${result(total(i))});`)}
        }
      `,
    };
  }
  const teams = workgroup / lanes, parts = lanes / width, stride = workgroup / width;
  const keep = variables.map((variable, i) =>
    `partial[${i * stride}u + thread / ${width}u] = ${variable};`
  );
  const number = { row: `index / ${outputs}u`, output: `index % ${outputs}u` };
  const added = ({ first, of, times }: SumPlace) => {
    const start = of === "result"
      ? `index * ${stride}u`
      : `${first * stride}u + ${times * stride}u * (${number[of]})`;
    return Array.from(
      { length: parts },
      (_, part) => `partial[${start} + team * ${parts}u + ${part}u]`,
    ).join(" + ");
  };
  return {
    enables,
    declarations: `var<workgroup> partial: array<f32, ${stride * sums}>;`,
    reduce: wgsl`
      ${shuffles}
      if (thread % ${width}u == 0u) {
        ${keep}
      }
      workgroupBarrier();
      for (var i = thread; i < ${teams * results}u; i += ${workgroup}u) {
        let team = i % ${teams}u;
        let index = i / ${teams}u;
        store(index, tile + team * ${outputs}u, ${result(added)});
      }
    `,
  };
}

/** Statements that add up a variable over `lanes` neighbours of a subgroup, a power of 2. */
export function shuffledSum(variable: string, lanes: number): string[] {
  return Array.from(
    { length: Math.log2(lanes) },
    (_, i) => `${variable} += subgroupShuffleXor(${variable}, ${lanes >> (i + 1)}u);`,
  );
}

/**
 * A loop over `count` units in which lane l takes unit l, l + lanes, …; `step` reads `unit`. Steps are written
 * out `unroll` at a time, because wgpu adds a counter to every loop that it is given.
 */
export function teamLoop(
  step: string,
  { lanes, count, unroll }: {
    readonly lanes: number;
    readonly count: number;
    readonly unroll: number;
  },
): string {
  const whole = Math.floor(count / lanes), rest = count % lanes;
  const looped = whole < 2 * unroll ? 0 : whole - whole % unroll;
  const stepAt = (unit: string) =>
    wgsl`
    {
      let unit = ${unit};
      ${step}
    }
  `;
  const parts: string[] = [];
  if (looped > 0) {
    parts.push(wgsl`
      for (var base = lane; base < ${looped * lanes}u; base += ${unroll * lanes}u) {
        ${Array.from({ length: unroll }, (_, i) => stepAt(`base + ${i * lanes}u`))}
      }
    `);
  }
  for (let i = looped; i < whole; i++) parts.push(stepAt(`lane + ${i * lanes}u`));
  if (rest > 0) {
    parts.push(wgsl`
      if (lane < ${rest}u) {
        ${stepAt(`lane + ${whole * lanes}u`)}
      }
    `);
  }
  return parts.join("\n");
}
