// Sizes of random graphs. A graph is run with several bindings one after another, so a size is a list: what it is
// in each of them. Equal lists are the same size, and arithmetic on lists is a shape rule that shares nothing
// with the engine's symbols.

/** A size in each binding. */
export type Size = readonly number[];

/** Sizes, outermost first. */
export type Shape = readonly Size[];

/** Whether two sizes are the same in every binding. */
export function equal(a: Size, b: Size): boolean {
  return a.every((size, i) => size === b[i]);
}

/** The number that a size is in all bindings, if it is one. */
export function fixedSize(size: Size): number | undefined {
  return size.every((one) => one === size[0]) ? size[0] : undefined;
}

/** The numbers that a shape is in all bindings, if all its sizes are fixed. */
export function fixedShape(shape: Shape): number[] | undefined {
  const sizes = shape.map(fixedSize);
  return sizes.includes(undefined) ? undefined : sizes as number[];
}

/** Smallest value over the bindings. */
export function least(size: Size): number {
  return Math.min(...size);
}

/** Largest number of elements over the bindings. */
export function mostElements(shape: Shape): number {
  const bindings = shape[0]?.length ?? 1;
  const counts = Array.from({ length: bindings }, (_, i) => countOf(shapeAt(shape, i)));
  return Math.max(...counts);
}

/** The shape in one binding. */
export function shapeAt(shape: Shape, binding: number): number[] {
  return shape.map((size) => size[binding]!);
}

/** Number of elements. */
export function countOf(shape: readonly number[]): number {
  return shape.reduce((count, size) => count * size, 1);
}

/** The sum of sizes. */
export function plus(a: Size, b: Size): Size {
  return a.map((size, i) => size + b[i]!);
}

/** The product of sizes. */
export function times(a: Size, b: Size): Size {
  return a.map((size, i) => size * b[i]!);
}

/** What two shapes are broadcast to: a size is 1 everywhere, or like the other one; undefined: neither. */
export function broadcast(a: Shape, b: Shape): Shape | undefined {
  const rank = Math.max(a.length, b.length);
  const out: Size[] = [];
  for (let axis = 0; axis < rank; axis++) {
    const x = a[axis - rank + a.length], y = b[axis - rank + b.length];
    if (!x || !y) out.push((x ?? y)!);
    else if (equal(x, y) || fixedSize(y) === 1) out.push(x);
    else if (fixedSize(x) === 1) out.push(y);
    else return undefined;
  }
  return out;
}

/** A shape with one axis of another size. */
export function withAxis(shape: Shape, axis: number, size: Size): Shape {
  return shape.map((one, i) => i === axis ? size : one);
}
