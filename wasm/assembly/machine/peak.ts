// Arithmetic without memory: benches put matrix products beside what the processor does at most. Which of
// the kinds are worth asking for is the caller's to know (bench/support/peak_kinds.ts).
import { nextChunk, u32At } from "./runtime";
import { PEAK_CHUNKS, PEAK_KIND, PEAK_TIMES } from "../generated/opcodes";
import { peakDot, peakFloat, peakPair, peakWide } from "../generated/peak";

/** Where results go, so that no compiler finds the work useless. */
const SINK: usize = memory.data(16, 16);

export function peak(ip: usize): void {
  const total = u32At(ip, PEAK_CHUNKS), kind = u32At(ip, PEAK_KIND), times = u32At(ip, PEAK_TIMES);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    let sums: v128;
    if (kind == 0) sums = peakDot(times);
    else if (kind == 1) sums = peakPair(times);
    else if (kind == 2) sums = peakWide(times);
    else sums = peakFloat(times);
    v128.store(SINK, sums);
  }
}
