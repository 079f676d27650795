// The smallest rectangle around points, turned as it has to be: convex hull (Andrew's monotone chain), then
// the best of the rectangles that lie along one of its edges, which is the smallest (Freeman and Shapira,
// 1975).

/**
 * A point: column, row.
 * @category Pictures
 */
export type Point = readonly [x: number, y: number];

/**
 * Corners from the top left one on, with the clock as one sees the picture.
 * @category Pictures
 */
export type Corners = readonly [Point, Point, Point, Point];

/** A rectangle and its shorter side. */
export interface Rectangle {
  readonly corners: Corners;
  readonly shortSide: number;
}

/** The smallest rectangle around at least one point. */
export function smallestRectangle(points: readonly Point[]): Rectangle {
  const hull = convexHull(points);
  let best:
    | { readonly area: number; readonly corners: Corners; readonly shortSide: number }
    | undefined;
  hull.forEach(([x, y], i) => {
    const [nextX, nextY] = hull[(i + 1) % hull.length]!;
    const length = Math.hypot(nextX - x, nextY - y);
    const [ux, uy] = length === 0 ? [1, 0] : [(nextX - x) / length, (nextY - y) / length];
    let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
    for (const [px, py] of hull) {
      const along = px * ux + py * uy, across = py * ux - px * uy;
      left = Math.min(left, along), right = Math.max(right, along);
      top = Math.min(top, across), bottom = Math.max(bottom, across);
    }
    const area = (right - left) * (bottom - top);
    if (best && area >= best.area) return;
    const at = (along: number, across: number): Point => [
      along * ux - across * uy,
      along * uy + across * ux,
    ];
    const corners = [at(left, top), at(right, top), at(right, bottom), at(left, bottom)] as const;
    best = { area, corners, shortSide: Math.min(right - left, bottom - top) };
  });
  return { corners: inOrder(best!.corners), shortSide: best!.shortSide };
}

/** The hull, in one direction. */
export function convexHull(points: readonly Point[]): Point[] {
  const sorted = [...points].sort(([a, b], [c, d]) => a - c || b - d);
  const half = (list: readonly Point[]) => {
    const chain: Point[] = [];
    for (const point of list) {
      while (chain.length > 1 && turn(chain.at(-2)!, chain.at(-1)!, point) <= 0) chain.pop();
      chain.push(point);
    }
    chain.pop();
    return chain;
  };
  const hull = [...half(sorted), ...half(sorted.toReversed())];
  return hull.length > 0 ? hull : sorted.slice(0, 1);
}

function turn([ax, ay]: Point, [bx, by]: Point, [cx, cy]: Point): number {
  return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
}

/** Corners in the order of {@linkcode Corners}: the two left ones by their rows, then the right ones. */
export function inOrder(corners: Corners): Corners {
  const [a, b, c, d] = [...corners].sort(([x], [y]) => x - y) as [Point, Point, Point, Point];
  const [topLeft, bottomLeft] = b[1] > a[1] ? [a, b] : [b, a];
  const [topRight, bottomRight] = d[1] > c[1] ? [c, d] : [d, c];
  return [topLeft, topRight, bottomRight, bottomLeft];
}

/** Whether a point is inside or on the edge. */
export function isInside([x, y]: Point, corners: Corners): boolean {
  return corners.every((corner, i) => turn(corner, corners[(i + 1) % 4]!, [x, y]) >= 0);
}

/** Area by the shoelace formula, and length of the outline. */
export function measure(corners: Corners): { readonly area: number; readonly length: number } {
  let area = 0, length = 0;
  corners.forEach(([x, y], i) => {
    const [nextX, nextY] = corners[(i + 1) % 4]!;
    area += x * nextY - nextX * y;
    length += Math.hypot(nextX - x, nextY - y);
  });
  return { area: Math.abs(area) / 2, length };
}
