// Draws of chance from a seed, the same on every machine: for fuzzing and benches.

/** A source of draws below a bound. */
export type Draw = (below: number) => number;

/** 32-bit generator (splitmix32) started from two numbers. */
export function createDraw(seed: number, index: number): Draw {
  let state = (Math.imul(seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b)) >>> 0;
  return (below) => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return Math.floor(((z ^ (z >>> 15)) >>> 0) / 0x1_0000_0000 * below);
  };
}
