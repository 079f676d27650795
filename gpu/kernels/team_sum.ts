// Sums over teams of neighbouring invocations, the last act of every product of few rows: in registers
// where a team fits into a subgroup, else through workgroup memory with a single barrier, after which one
// invocation adds up one sum. And the loop by which a team's lanes walk over a row.

import { wgsl } from "../wgsl.ts";

/** Teams of a workgroup. */
export interface TeamSize {
  /** Invocations of a workgroup. */
  readonly workgroup: number;
  /** Invocations of a team; divides `workgroup`. */
  readonly lanes: number;
  /** Add up by shuffles; teams must not be larger than a subgroup, and `lanes` a power of 2. */
  readonly subgroups: boolean;
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

/** How `sums` variables are added up, where a team makes `outputs` outputs. */
export function teamSum(
  { workgroup, lanes, subgroups }: TeamSize,
  sums: number,
  outputs: number,
): TeamSum {
  const variables = Array.from({ length: sums }, (_, i) => `sum${i}`);
  if (subgroups) {
    const shuffles = variables.flatMap((variable) =>
      Array.from(
        { length: Math.log2(lanes) },
        (_, i) => `${variable} += subgroupShuffleXor(${variable}, ${lanes >> (i + 1)}u);`,
      )
    );
    return {
      enables: ["subgroups"],
      declarations: "",
      reduce: wgsl`
        ${shuffles}
        if (lane == 0u) {
          ${variables.map((variable, i) => `store(${i}u, first, ${variable});`)}
        }
      `,
    };
  }
  const teams = workgroup / lanes;
  return {
    enables: [],
    declarations: `var<workgroup> partial: array<f32, ${workgroup * sums}>;`,
    reduce: wgsl`
      ${variables.map((variable, i) => `partial[${i * workgroup}u + thread] = ${variable};`)}
      workgroupBarrier();
      for (var i = thread; i < ${teams * sums}u; i += ${workgroup}u) {
        let team = i % ${teams}u;
        let index = i / ${teams}u;
        var total = 0.0;
        for (var other = 0u; other < ${lanes}u; other++) {
          total += partial[index * ${workgroup}u + team * ${lanes}u + other];
        }
        store(index, tile + team * ${outputs}u, total);
      }
    `,
  };
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
