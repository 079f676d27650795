// In which order a tower gets the patches of a picture. Squares of patches that become one row of the language model stand
// together, so that joining them is a view; where some layers see windows alone, the squares of a window stand together
// too, so that a window is a range of rows. A tower sees places, not order, so nothing else depends on it.

/** How a picture lies. */
export interface TowerGrid {
  /** Rows and columns of patches. */
  readonly rows: number;
  readonly columns: number;
  /** Edge of a square, in patches. */
  readonly side: number;
  /** Edge of a window, in patches; 0: there are none. */
  readonly window: number;
}

/** The order of a picture's patches. */
export interface TowerLayout {
  /** By patch in that order, its row and its column. */
  readonly rowOf: Int32Array;
  readonly columnOf: Int32Array;
  /** By patch in that order, the range of those of its window. */
  readonly windowStarts: Int32Array;
  readonly windowEnds: Int32Array;
  /** By square in that order, its place if they are counted row by row. */
  readonly places: Int32Array;
}

/**
 * Orders the patches of a picture.
 *
 * @throws {RangeError} If they do not fill squares.
 */
export function towerLayout({ rows, columns, side, window }: TowerGrid): TowerLayout {
  if (rows % side !== 0 || columns % side !== 0) {
    throw new RangeError(`${rows} × ${columns} patches do not fill squares of ${side} × ${side}`);
  }
  const patches = rows * columns, column = () => new Int32Array(patches);
  const layout = {
    ...{ rowOf: column(), columnOf: column(), windowStarts: column(), windowEnds: column() },
    places: new Int32Array(patches / side ** 2),
  };
  const down = rows / side, across = columns / side;
  const edge = window > 0 ? Math.max(1, Math.floor(window / side)) : Math.max(down, across);
  let patch = 0, square = 0;
  const take = (y: number, x: number) => {
    layout.places[square++] = y * across + x;
    for (let i = 0; i < side ** 2; i++, patch++) {
      layout.rowOf[patch] = y * side + Math.floor(i / side);
      layout.columnOf[patch] = x * side + i % side;
    }
  };
  for (let top = 0; top < down; top += edge) {
    for (let left = 0; left < across; left += edge) {
      const from = patch;
      for (let y = top; y < Math.min(down, top + edge); y++) {
        for (let x = left; x < Math.min(across, left + edge); x++) take(y, x);
      }
      layout.windowStarts.fill(from, from, patch);
      layout.windowEnds.fill(patch, from, patch);
    }
  }
  return layout;
}
