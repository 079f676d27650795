// What a deliberate fault is, and how the tables of this folder state them.

import { ROOT } from "../support/task.ts";

/** One fault. */
export interface Fault extends Omit<FaultGroup, "faults"> {
  /** What would go wrong. */
  readonly what: string;
  /** Text that occurs once in the file, and what takes its place. */
  readonly from: string;
  readonly to: string;
}

/** Faults of a file that the same tests must notice. */
export interface FaultGroup {
  /** Path from the root. */
  readonly file: string;
  /** The smallest test files. */
  readonly tests: readonly string[];
  /** Only tests whose name contains this, where a file is long. */
  readonly name?: string;
  readonly faults: readonly (readonly [what: string, from: string, to: string])[];
}

/** How often a fault's text is in its file: once, or the fault says nothing. */
export function occurrences({ file, from }: Fault): number {
  return Deno.readTextFileSync(`${ROOT}/${file}`).split(from).length - 1;
}

/** The faults of some groups, one by one. */
export function listed(groups: readonly FaultGroup[]): Fault[] {
  return groups.flatMap(({ faults, ...group }) =>
    faults.map(([what, from, to]) => ({ ...group, what, from, to }))
  );
}
