// Counts and clocks of one generation, and the figures made of them.

import type { GenerationStats } from "./generation.ts";
import type { SpeculationStats } from "./speculate/speculation.ts";
import type { Runtime } from "./runtime.ts";

/** Counts and clocks of a run. */
export interface Meter {
  readonly start: number;
  firstTokenMs: number;
  promptTokens: number;
  prefillTokens: number;
  prefillMs: number;
  decodeTokens: number;
  decodeMs: number;
  speculation: SpeculationStats | undefined;
}

/** A meter that starts now. */
export function createMeter(): Meter {
  return {
    start: performance.now(),
    firstTokenMs: 0,
    promptTokens: 0,
    prefillTokens: 0,
    prefillMs: 0,
    decodeTokens: 0,
    decodeMs: 0,
    speculation: undefined,
  };
}

/** Figures at the end; speeds leave out waiting for the reader. */
export function statsOf(meter: Meter, { loadMs, memory }: Runtime): GenerationStats {
  const { firstTokenMs, promptTokens, prefillTokens, prefillMs } = meter;
  const { decodeTokens, decodeMs, speculation } = meter;
  const perSecond = (count: number, ms: number) => ms > 0 ? Math.max(0, count) * 1000 / ms : 0;
  return {
    loadMs,
    firstTokenMs,
    promptTokens,
    prefillTokens,
    prefillPerSecond: perSecond(prefillTokens, prefillMs),
    decodeTokens,
    decodePerSecond: perSecond(decodeTokens - 1, decodeMs),
    memory,
    ...speculation && { speculation },
  };
}
