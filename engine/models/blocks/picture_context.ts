// What the layers of an encoder of pictures see: all patches of their picture, or those of a window; and by what they are
// rotated, where they are. Inputs: positions, starts, ends i32[M]; window_starts, window_ends i32[M] where some layers see
// windows; patch_rows, patch_columns i32[M] where rotations go by place.

import { UnsupportedError } from "../../errors.ts";
import type { GraphBuilder } from "../../graph/builder.ts";
import type { Dim } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import { windowOf } from "./attention.ts";
import { type BlockContext, needed } from "./context.ts";
import { tableOfAxes } from "./rope_axes.ts";
import type { ModelParts } from "../build.ts";
import { ropeFrequencies } from "../rope.ts";

/** Surroundings of the layers of an encoder of pictures, whose rows are patches. */
export function pictureContext(
  parts: ModelParts,
  { builder, rows }: { readonly builder: GraphBuilder; readonly rows: Dim },
): BlockContext {
  const { resolved: { spec }, params, tensors, file } = parts;
  const made = new Map<string, Value>();
  const input = (name: string) => {
    const value = made.get(name) ?? builder.input(name, [rows], "i32");
    made.set(name, value);
    return value;
  };
  const positions = input("positions");
  const see = { spec, params, file: file.name };
  const isRotated = Object.values(spec.attention.kinds).some(({ theta }) => theta !== undefined);
  if (isRotated && !spec.attention.ropeByPlace) {
    throw new UnsupportedError("patches are rotated by their places only", {
      file: file.name,
      place: "attention.ropeByPlace",
    });
  }
  const table = isRotated ? placeTable(parts, { builder, input }) : undefined;
  return {
    ...{ builder, spec, params, tensors, file: file.name },
    inputs: { tokens: positions, positions, slots: undefined, logitRows: positions },
    spans: {
      isCached: false,
      ofKind: (kind) =>
        windowOf(see, kind) > 0
          ? { starts: input("window_starts"), ends: input("window_ends") }
          : { starts: input("starts"), ends: input("ends") },
    },
    capacity: 0,
    cacheType: "f32",
    ropeTable: () => table,
    observe: () => {},
  };
}

/** Rotations by a patch's row and its column, which have the same frequencies. */
function placeTable(
  { params, file }: ModelParts,
  { builder, input }: {
    readonly builder: GraphBuilder;
    readonly input: (name: string) => Value;
  },
): Value {
  const { ropeTheta: theta } = needed({ params, file: file.name }, ["ropeTheta"]);
  const { ropeDim, context } = params;
  const { inverse } = ropeFrequencies({
    ...{ dim: ropeDim / 2, theta, context, scaling: undefined, file: file.name },
  });
  const frequencies = builder.constant("rope.inverse", Float32Array.of(...inverse, ...inverse));
  const axes = ["patch_rows", "patch_columns"].map((name) => ({
    pairs: inverse.length,
    places: input(name),
  }));
  return tableOfAxes(builder, {
    ...{ axes, name: "rope", pairs: 2 * inverse.length, file: file.name },
    table: ({ places }, path) =>
      builder.op("rope_table", [places, frequencies], { magnitude: 1, beyond: 0 }, path)[0]!,
  });
}
