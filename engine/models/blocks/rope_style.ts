// Which channels a rotation pairs: the spec says it, and a few files say it themselves.

import type { BlockContext } from "./context.ts";

/** Attributes of a rope node. */
export function ropeStyle({ spec, params }: BlockContext): { style: "half" | "interleaved" } {
  if (params.ropeInterleaved === undefined) return { style: spec.attention.ropeStyle! };
  return { style: params.ropeInterleaved ? "interleaved" : "half" };
}
