// Guidance as an input: networks that were distilled with it (LCM, arXiv 2310.04378) are told how much the prompt counts,
// as waves, and are asked once a step.

const LONGEST = 10_000, UNIT = 1000;

/** Guidance as `width` numbers: sines, then cosines. */
export function guidanceWaves(guidance: number, width: number): Float32Array {
  const half = Math.floor(width / 2), waves = new Float32Array(width);
  for (let i = 0; i < half; i++) {
    const angle = (guidance - 1) * UNIT * Math.exp(-Math.log(LONGEST) * i / (half - 1));
    waves[i] = Math.sin(angle);
    waves[half + i] = Math.cos(angle);
  }
  return waves;
}
