// What a bench prints: figures with a peer measured in the same run. One JSON line a figure with
// `--json`, a table otherwise. `ratio` > 1 always means better than the peer, whatever the unit.

/** One measured figure. */
export interface Figure {
  readonly bench: string;
  /** `decode …`, `prefill …`, `embed …`, `first token …`, `memory …`, `load …`. */
  readonly case: string;
  readonly unit: string;
  readonly value: number;
  readonly peer: string | null;
  readonly peerValue: number | null;
  readonly ratio: number | null;
  /** Part of the measured limit of the machine, where there is one. */
  readonly share: number | null;
  readonly machine: string;
}

/** Units of which more is better; of all others less is. */
const MORE_IS_BETTER: ReadonlySet<string> = new Set([
  "tokens/s",
  "GB/s",
  "GFLOP/s",
  "M values/s",
  "sentences/s",
  "of 1",
]);

/** The middle value; the mean of the two middle ones for an even count. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Relation to the peer, in the direction where more is better. */
export function ratioOf(unit: string, value: number, peerValue: number | null): number | null {
  if (peerValue === null) return null;
  return MORE_IS_BETTER.has(unit) ? value / peerValue : peerValue / value;
}

/** Processor, threads and versions: a figure without its machine says nothing. */
export function machineName(): string {
  let cpu = Deno.build.arch as string;
  try {
    cpu = /^model name\s*:\s*(.+)$/m.exec(Deno.readTextFileSync("/proc/cpuinfo"))?.[1] ?? cpu;
  } catch {
    // Not Linux: the architecture has to do.
  }
  return `${cpu}, ${navigator.hardwareConcurrency} threads, Deno ${Deno.version.deno}`;
}

/** Three digits; what could not be measured is NaN. */
function digits(value: number): string {
  if (Number.isNaN(value)) return "not measured";
  if (Math.abs(value) < 0.1 && value !== 0) return value.toPrecision(3);
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** Markdown table of figures. */
export function figureTable(figures: readonly Figure[]): string {
  const hasShares = figures.some(({ share }) => share !== null);
  const head = [
    "case",
    "unit",
    "troodon",
    "peer",
    "peer's",
    "ratio",
    ...hasShares ? ["share"] : [],
  ];
  const rows = figures.map((f) => [
    f.case,
    f.unit,
    digits(f.value),
    f.peer ?? "",
    f.peerValue === null ? "" : digits(f.peerValue),
    f.ratio === null ? "" : f.ratio.toFixed(2),
    ...hasShares ? [f.share === null ? "" : f.share.toFixed(2)] : [],
  ]);
  const widths = head.map((_, c) => Math.max(...[head, ...rows].map((row) => row[c]!.length)));
  const left = new Set([0, 1, 3]);
  const line = (row: readonly string[]): string =>
    `| ${
      row.map((cell, c) => left.has(c) ? cell.padEnd(widths[c]!) : cell.padStart(widths[c]!))
        .join(" | ")
    } |`;
  const rule = `|${
    widths.map((w, c) => left.has(c) ? "-".repeat(w + 2) : `${"-".repeat(w + 1)}:`).join("|")
  }|`;
  return [line(head), rule, ...rows.map(line)].join("\n");
}

/** Prints one figure as it is measured (`--json`) or keeps quiet until the table. */
export function printFigure(figure: Figure, json: boolean): void {
  if (json) console.log(JSON.stringify(figure));
}
