// What the system says of a process (Linux): memory, and the processor time of each of its threads.

/** Resident bytes. */
export function residentBytes(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1];
  return Number(kilobytes) * 1024;
}

/** Ticks of processor time of the first thread, which is the one that serves in Deno, and of all others. */
export function threadTicks(pid: number): { readonly first: number; readonly others: number } {
  let first = 0, others = 0;
  for (const { name } of Deno.readDirSync(`/proc/${pid}/task`)) {
    const ticks = ticksOf(`/proc/${pid}/task/${name}/stat`);
    if (Number(name) === pid) first = ticks;
    else others += ticks;
  }
  return { first, others };
}

function ticksOf(path: string): number {
  try {
    // Behind the name in brackets: state is field 3, utime 14, stime 15.
    const fields = Deno.readTextFileSync(path).replace(/^.*\) /s, "").split(" ");
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return 0; // The thread has ended.
  }
}
