// How long this thread computed. On a busy machine the clock also counts what others did; Linux tells a
// thread's own time.

/** Milliseconds that this thread has had a processor, or those of the clock where the system does not tell. */
export function threadMs(): number {
  try {
    return Number(Deno.readTextFileSync("/proc/thread-self/schedstat").split(" ")[0]) / 1e6;
  } catch {
    return performance.now();
  }
}
