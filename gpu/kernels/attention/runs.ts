// What the kernels of attention for many rows share. Rows of a workgroup may belong to different sessions: consecutive rows
// of one cache are a run, and runs are worked off one after the other, the queries of other runs being masked. Sums begin
// with a run and are written behind it, for a weight of 0 times what is no number is none: no session spoils another. A
// prompt's chunk is a single run.

import { wgsl } from "../../wgsl.ts";

/** `spans` of so many rows of a workgroup, `shared_run`, and `next_run(first, rows_here)`: the run that begins there. */
export function runsOf(rows: number): string {
  return wgsl`
    // Rows first … last - 1 of the workgroup's, of one cache, and the keys that any of them sees.
    struct Run { first: u32, last: u32, start: u32, end: u32 }

    var<workgroup> spans: array<Span, ${rows}>;
    var<workgroup> shared_run: Run;

    fn next_run(first: u32, rows_here: u32) -> Run {
      var run = Run(first, first, 0xffffffffu, 0u);
      if (first >= rows_here) { return run; }
      let base = spans[first].base;
      while (run.last < rows_here) {
        let span = spans[run.last];
        if (span.base != base) { break; }
        if (span.start < span.end) {
          run.start = min(run.start, span.start);
          run.end = max(run.end, span.end);
        }
        run.last++;
      }
      return run;
    }
  `;
}

/** Statements of a loop that take the next `run`, which begins at row `next`, or leave the loop. */
export const TAKE_RUN: string = wgsl`
  if (thread == 0u) { shared_run = next_run(next, rows_here); }
  let run = workgroupUniformLoad(&shared_run);
  if (run.first >= run.last) { break; }
  next = run.last;
`;

/** Whether a row is one of the run: of an expression. */
export function isOfRun(row: string): string {
  return `${row} >= run.first && ${row} < run.last`;
}

/** The sink of a head takes part in the maximum `peak` and in the sum `all`; `scale` is what others are multiplied by. */
export function sinkSum(head: string): string {
  return wgsl`
    let sink = sinks[${head}];
    let most = max(peak, sink);
    scale = exp(peak - most);
    all = all * scale + exp(sink - most);
  `;
}
