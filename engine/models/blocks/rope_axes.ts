// Rotations by several numbers: each axis turns its own share of the pairs of channels, one behind the other, as rotations by
// a position turn all of them (Qwen2-VL, arXiv 2409.12191, section 2.1).

import { FormatError } from "../../errors.ts";
import type { GraphBuilder } from "../../graph/builder.ts";
import type { Value } from "../../graph/graph.ts";

/** An axis by which some pairs of channels are turned, and places on it i32[M]. */
export interface RopeAxis {
  readonly pairs: number;
  readonly places: Value;
}

/** What a table is made of. */
export interface AxesOptions {
  readonly axes: readonly RopeAxis[];
  /** Path-like name of its node. */
  readonly name: string;
  /** Those of all axes. */
  readonly pairs: number;
  /** Path or URL, for messages. */
  readonly file: string;
  /** f32[M, 2 · pairs] of one axis, of which its own columns count. */
  readonly table: (axis: RopeAxis, path: string) => Value;
}

/**
 * One rotary table f32[M, 2 · pairs] of those of all axes.
 *
 * @throws {FormatError} If the axes share out more or fewer pairs than there are.
 */
export function tableOfAxes(
  builder: GraphBuilder,
  { axes, name, pairs, file, table }: AxesOptions,
): Value {
  const shared = axes.reduce((sum, axis) => sum + axis.pairs, 0);
  if (shared !== pairs) {
    throw new FormatError(`share out ${shared} frequencies, and there are ${pairs}`, {
      file,
      place: "rotary scaling, mrope_section",
    });
  }
  let from = 0;
  const parts = axes.map((axis, i) => {
    const isOwn = (pair: number) => pair >= from && pair < from + axis.pairs;
    const own = Float32Array.from({ length: 2 * pairs }, (_, at) => Number(isOwn(at % pairs)));
    from += axis.pairs;
    const path = `${name}.axis${i}`;
    const mask = builder.constant(`${path}.own`, own, [1, 2 * pairs]);
    return builder.op("binary", [table(axis, path), mask], { kind: "mul" }, `${path}.part`)[0]!;
  });
  return parts.reduce((sum, part, i) =>
    builder.op("binary", [sum, part], { kind: "add" }, `${name}.sum${i}`)[0]!
  );
}
