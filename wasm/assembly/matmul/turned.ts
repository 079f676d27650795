// Columns turned by a Hadamard matrix of 32 (turnColumns of quant/int7_groups.ts), in the order of its sums.

@inline export function evens(a: v128, b: v128): v128 { return v128.shuffle<f32>(a, b, 0, 2, 4, 6); }
@inline export function odds(a: v128, b: v128): v128 { return v128.shuffle<f32>(a, b, 1, 3, 5, 7); }

/** Two vectors by neighbours, twice. */
@inline function storeNeighbours(a: v128, b: v128, to: usize): void {
  const c = evens(a, b), d = odds(a, b), sum = f32x4.add(c, d), difference = f32x4.sub(c, d);
  const e = evens(sum, difference), f = odds(sum, difference);
  v128.store(to, f32x4.add(e, f));
  v128.store(to, f32x4.sub(e, f), 16);
}

@inline function times(x: usize, factor: v128): v128 { return f32x4.mul(v128.load(x), factor); }

/** Turns `count` floats, a multiple of 32, times `factor`; `to` may be where they are. */
export function turn(x: usize, count: usize, factor: f32, to: usize): void {
  const m = f32x4.splat(factor);
  for (const end = x + 4 * count; x < end; x += 128, to += 128) {
    const a = times(x, m), b = times(x + 16, m), c = times(x + 32, m), d = times(x + 48, m);
    const e = times(x + 64, m), f = times(x + 80, m), g = times(x + 96, m), h = times(x + 112, m);
    // 16 columns apart.
    const a1 = f32x4.add(a, e), b1 = f32x4.add(b, f), c1 = f32x4.add(c, g), d1 = f32x4.add(d, h);
    const e1 = f32x4.sub(a, e), f1 = f32x4.sub(b, f), g1 = f32x4.sub(c, g), h1 = f32x4.sub(d, h);
    // 8 columns apart.
    const a2 = f32x4.add(a1, c1), b2 = f32x4.add(b1, d1), c2 = f32x4.sub(a1, c1), d2 = f32x4.sub(b1, d1);
    const e2 = f32x4.add(e1, g1), f2 = f32x4.add(f1, h1), g2 = f32x4.sub(e1, g1), h2 = f32x4.sub(f1, h1);
    // 4 columns apart, then neighbours.
    storeNeighbours(f32x4.add(a2, b2), f32x4.sub(a2, b2), to);
    storeNeighbours(f32x4.add(c2, d2), f32x4.sub(c2, d2), to + 32);
    storeNeighbours(f32x4.add(e2, f2), f32x4.sub(e2, f2), to + 64);
    storeNeighbours(f32x4.add(g2, h2), f32x4.sub(g2, h2), to + 96);
  }
}
