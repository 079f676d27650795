// Energy of the processor from the counter that Linux shows of Intel's and AMD's (RAPL), where this process may read it.

const COUNTER = "/sys/class/powercap/intel-rapl:0/energy_uj";
const RANGE = "/sys/class/powercap/intel-rapl:0/max_energy_range_uj";

/** Mean watts of the processor's package while something runs; NaN where there is no counter. */
export async function wattsWhile(work: () => Promise<void>): Promise<number> {
  const before = readCounter(COUNTER), start = performance.now();
  await work();
  const after = readCounter(COUNTER), seconds = (performance.now() - start) / 1000;
  if (before === undefined || after === undefined) return NaN;
  const joules = (after >= before ? after - before : after + (readCounter(RANGE) ?? NaN) - before) /
    1e6;
  return joules / seconds;
}

function readCounter(path: string): number | undefined {
  try {
    return Number(Deno.readTextFileSync(path));
  } catch {
    return undefined;
  }
}
