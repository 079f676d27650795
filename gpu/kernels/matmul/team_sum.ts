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

/** How `sums` variables are added up, where a team makes `outputs` outputs. */
export function teamSum(
  { workgroup, lanes, subgroupSize }: TeamSize,
  { sums, outputs }: { readonly sums: number; readonly outputs: number },
): TeamSum {
  const variables = Array.from({ length: sums }, (_, i) => `sum${i}`);
  const enables = subgroupSize > 0 ? ["subgroups"] as const : [];
  // Lanes whose sums are in one of them after the shuffles.
  const width = subgroupSize > 0 ? Math.min(lanes, subgroupSize) : 1;
  const shuffles = variables.flatMap((variable) => shuffledSum(variable, width));
  if (width === lanes) {
    return {
      enables,
      declarations: "",
      reduce: wgsl`
        ${shuffles}
        if (lane == 0u) {
          ${variables.map((variable, i) => `store(${i}u, first, ${variable});`)}
        }
      `,
    };
  }
  const teams = workgroup / lanes, parts = lanes / width, stride = workgroup / width;
  const keep = variables.map((variable, i) =>
    `partial[${i * stride}u + thread / ${width}u] = ${variable};`
  );
  const added = Array.from(
    { length: parts },
    (_, part) => `partial[index * ${stride}u + team * ${parts}u + ${part}u]`,
  );
  return {
    enables,
    declarations: `var<workgroup> partial: array<f32, ${stride * sums}>;`,
    reduce: wgsl`
      ${shuffles}
      if (thread % ${width}u == 0u) {
        ${keep}
      }
      workgroupBarrier();
      for (var i = thread; i < ${teams * sums}u; i += ${workgroup}u) {
        let team = i % ${teams}u;
        let index = i / ${teams}u;
        store(index, tile + team * ${outputs}u, ${added.join(" + ")});
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
