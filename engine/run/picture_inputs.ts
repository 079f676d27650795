// Pictures in the rows of a step. Where a step has a number below 0 in place of a token, the row is one of a picture: its
// values come from the host and stand in the stream where the token's embedding would. A graph that takes them has
//
//   picture_rows      f32[P, hidden]: rows of pictures, as many as the step has
//   row_choice        i32[M]: of the embeddings of the tokens and, behind them, the rows of pictures, which one a row is
//   rope_offsets.0 …  i32[M]: added to the position for rotations, by axis, where they go by place in a picture
//   seen_ends         i32[M]: behind the last position that a row sees, where it sees all of its picture
//   seen_starts.W     i32[M]: the first position that a row sees of a window of W
//
// A step without pictures has P = 0 and the choice 0, 1, 2, …, so nothing of it changes while a device goes on by itself.

import type { PreparedPlan } from "./backend.ts";
import { AXES, type Step } from "./step.ts";

/** Where a row stands in its picture. */
export interface PicturePlace {
  /** Rows of the picture before it, and in all. */
  readonly row: number;
  readonly count: number;
}

/** Rows of pictures by the numbers below 0 that stand for them. */
export interface PictureRows {
  /** f32[hidden]. @throws {RangeError} If no picture has it. */
  rowOf(id: number): Float32Array;
  /** @throws {RangeError} As `rowOf`. */
  placeOf(id: number): PicturePlace;
}

/** Names of these inputs. */
export const PICTURE_INPUTS = {
  rows: "picture_rows",
  choice: "row_choice",
  ends: "seen_ends",
  offsets: (axis: number): string => `rope_offsets.${axis}`,
  starts: (window: number): string => `seen_starts.${window}`,
} as const;

/** Symbol of the rows of pictures in a step. */
export const PICTURE_SYMBOL = "P";

/** Writes the inputs for pictures of a step, behind its columns; gives P. */
export type PictureWriter = (step: Step) => number;

/** The writer for a plan; undefined where its graph takes no pictures. */
export function pictureWriter(
  prepared: PreparedPlan,
  pictures: PictureRows | undefined,
): PictureWriter | undefined {
  const { inputs } = prepared.plan.graph;
  const whole = (name: string) =>
    inputs.some((one) => one.name === name) ? prepared.input(name) as Int32Array : undefined;
  const choice = whole(PICTURE_INPUTS.choice);
  if (!choice || !pictures) return undefined;
  const rows = prepared.input(PICTURE_INPUTS.rows) as Float32Array;
  const tokens = prepared.input("tokens") as Int32Array;
  const hidden = inputs.find(({ name }) => name === PICTURE_INPUTS.rows)!.shape[1] as number;
  const offsets = Array.from({ length: AXES }, (_, axis) => whole(PICTURE_INPUTS.offsets(axis)));
  const ends = whole(PICTURE_INPUTS.ends);
  const starts = inputs.flatMap(({ name }) => {
    const [, window] = /^seen_starts\.(\d+)$/.exec(name) ?? [];
    return window === undefined ? [] : [[prepared.input(name) as Int32Array, +window] as const];
  });

  function see(step: Step, row: number): void {
    const id = step.tokens[row]!, position = step.positions[row]!;
    const place = id < 0 ? pictures!.placeOf(id) : undefined;
    const first = position - (place?.row ?? 0);
    ends![row] = first + (place?.count ?? 1);
    for (let i = 0; i < starts.length; i++) {
      const [column, window] = starts[i]!;
      // What a window has left behind of its own picture is seen all the same.
      column[row] = window === 0 ? 0 : Math.max(0, Math.min(position - window + 1, first));
    }
  }

  return (step) => {
    const { count } = step;
    let taken = 0;
    for (let row = 0; row < count; row++) {
      const id = step.tokens[row]!;
      choice[row] = id < 0 ? count + taken : row;
      if (id < 0) {
        rows.set(pictures.rowOf(id), taken++ * hidden);
        tokens[row] = 0;
      }
      for (let axis = 0; axis < AXES; axis++) {
        const column = offsets[axis];
        if (column) column[row] = step.offsets[axis]![row]!;
      }
      if (ends) see(step, row);
    }
    return taken;
  };
}
