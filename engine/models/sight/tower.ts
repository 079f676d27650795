// A tower made ready on a device: pictures in, rows of the language model out, a part of a picture at a time.

import { ResourceError } from "../../errors.ts";
import type { Picture } from "../../formats/media/picture.ts";
import { patchNumbers } from "../blocks/patches.ts";
import type { PreparedPlan } from "../../run/backend.ts";
import type { BuiltTower } from "./tower_build.ts";
import { type TowerLayout, towerLayout } from "./tower_layout.ts";

/** What a tower makes of a part of a picture. */
export interface TowerRows {
  /** f32[squares, hidden], row by row of the picture's squares. */
  readonly rows: Float32Array;
  /** f32[patches, width], in the order of `layout`. */
  readonly states: Float32Array;
  readonly layout: TowerLayout;
  /** Squares of patches. */
  readonly grid: { readonly rows: number; readonly columns: number };
}

/** Planes of a part: colour by colour, row by row. */
export interface Planes extends Pick<Picture, "width" | "height"> {
  readonly values: Float32Array;
}

/** A tower that runs. */
export interface Tower {
  /**
   * Rejects with the signal's reason between two pieces of a long run.
   *
   * @throws {ResourceError} If the part is larger than the tower was planned for.
   */
  run(part: Planes, signal?: AbortSignal): Promise<TowerRows>;
  dispose(): void;
}

/** Puts pictures into a plan of a tower. */
export function createTower(
  prepared: PreparedPlan,
  { grid, side, window }: BuiltTower,
): Tower {
  const { leading, patch } = grid, numbers = patchNumbers(grid), { limits, graph } = prepared.plan;
  const has = (name: string) => graph.inputs.some((input) => input.name === name);
  const column = (name: string) => has(name) ? prepared.input(name) as Int32Array : undefined;
  const patches = prepared.input("patches") as Float32Array;
  const [positions, starts, ends, kept, windowStarts, windowEnds, rows, columns] = [
    ...["positions", "starts", "ends", "kept", "window_starts", "window_ends"],
    ...["patch_rows", "patch_columns"],
  ].map(column);

  function write(part: Planes, layout: TowerLayout, across: number): void {
    const { rowOf, columnOf } = layout, count = rowOf.length, all = leading + count;
    patches.fill(0, 0, leading * numbers);
    starts?.fill(0, 0, all);
    ends?.fill(all, 0, all);
    for (let i = 0; i < leading && positions; i++) positions[i] = i;
    for (let i = 0; i < count; i++) {
      const row = leading + i, y = rowOf[i]!, x = columnOf[i]!;
      if (positions) positions[row] = leading + y * across + x;
      if (kept) kept[i] = row;
      if (windowStarts) windowStarts[row] = leading + layout.windowStarts[i]!;
      if (windowEnds) windowEnds[row] = leading + layout.windowEnds[i]!;
      if (rows) rows[row] = y;
      if (columns) columns[row] = x;
      writePatch(part, { x, y }, row * numbers);
    }
  }

  /** Colour by colour, of each as many frames as a patch has, row by row. */
  function writePatch(
    { width, height, values }: Planes,
    { x, y }: { readonly x: number; readonly y: number },
    start: number,
  ): void {
    let at = start;
    for (let colour = 0; colour < grid.channels; colour++) {
      for (let frame = 0; frame < grid.frames; frame++) {
        for (let line = 0; line < patch; line++) {
          const from = (colour * height + y * patch + line) * width + x * patch;
          patches.set(values.subarray(from, from + patch), at);
          at += patch;
        }
      }
    }
  }

  return {
    async run(part, signal) {
      const across = Math.floor(part.width / patch), down = Math.floor(part.height / patch);
      const layout = towerLayout({ rows: down, columns: across, side, window });
      const count = layout.rowOf.length, squares = layout.places.length;
      if (squares > limits.N!) {
        throw new ResourceError(
          `a picture of ${part.width} × ${part.height} pixels is ${squares} rows of the language model, and ${limits
            .N!} are the most`,
          { remedy: "Make it smaller, or load the model with more pictureRows" },
        );
      }
      write(part, layout, across);
      const sizes = { N: squares, ..."M" in limits && { M: leading + count } };
      await prepared.run(sizes, undefined, signal);
      const made = prepared.output("rows") as Float32Array;
      const hidden = widthOf("rows"), ordered = new Float32Array(squares * hidden);
      layout.places.forEach((place, i) =>
        ordered.set(made.subarray(i * hidden, (i + 1) * hidden), place * hidden)
      );
      const states = (prepared.output("tower") as Float32Array).slice(0, count * widthOf("tower"));
      const grid = { rows: down / side, columns: across / side };
      return { rows: ordered, states, layout, grid };
    },
    dispose: () => prepared.dispose(),
  };

  function widthOf(name: string): number {
    return graph.outputs.find((output) => output.name === name)!.shape[1] as number;
  }
}
