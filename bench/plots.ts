// Draws docs/plots/cpu.svg from bench/results: how many times llama.cpp's speed, in its best build for the processor, each
// case reaches on each machine. A bar is the median of the runs there are, a whisker their range; docs/figures.md has the
// same in a table. "256 bits": V8 joined vectors, as a flag tells it to (docs/tuning.md). A run on another day is added to its machine's file (`--json`). Write both anew with
//
//   deno run --allow-read --allow-write bench/plots.ts

import { type Figure, median } from "./support/figures.ts";

const RESULTS = new URL("./results/", import.meta.url);
const TARGET = new URL("../docs/plots/cpu.svg", import.meta.url);
const TABLE = new URL("../docs/figures.md", import.meta.url);
/** Around the table in its document. */
const MARKS = ["<!-- runs: bench/plots.ts -->", "<!-- end of runs -->"] as const;

const MACHINES: readonly (readonly [file: string, label: string, colour: string])[] = [
  ["cpu-zen5-2-threads.jsonl", "AMD Zen 5", "#3b6fb6"],
  ["cpu-zen4-256-2-threads.jsonl", "Zen 4, 256 bits", "#2f6d5e"],
  ["cpu-zen4-2-threads.jsonl", "AMD Zen 4", "#559196"],
  ["cpu-amd-epyc-2-threads.jsonl", "AMD Zen 3", "#7aa6d8"],
  ["cpu-xeon-2-threads.jsonl", "Intel Xeon with AMX", "#c98a5b"],
];
const CASES: readonly (readonly [name: string, label: string])[] = [
  ["decode smollm2-135m 2 threads", "SmolLM2 135M: decode"],
  ["decode 8 sessions smollm2-135m 2 threads", "SmolLM2 135M: 8 at once"],
  ["prefill 512 smollm2-135m 2 threads", "SmolLM2 135M: prompt of 512"],
  ["first token smollm2-135m 2 threads", "SmolLM2 135M: first token"],
  ["decode gemma3-270m 2 threads", "Gemma 3 270M: decode"],
  ["prefill 512 gemma3-270m 2 threads", "Gemma 3 270M: prompt of 512"],
  ["first token gemma3-270m 2 threads", "Gemma 3 270M: first token"],
  ["decode llama-1b-q4_k_m 2 threads", "1B in Q4_K_M: decode"],
  ["prefill 128 llama-1b-q4_k_m 2 threads", "1B in Q4_K_M: prompt of 128"],
  ["decode llama-1b-q8_0 2 threads", "1B in Q8_0: decode"],
  ["prefill 128 llama-1b-q8_0 2 threads", "1B in Q8_0: prompt of 128"],
];
const BEST_BUILD = /^llama\.cpp \(node-llama-cpp/;

const WIDTH = 860, LEFT = 210, RIGHT = 40, TOP = 58, BAR = 13, GAP = 14, MOST = 7;

/** The picture. */
export function cpuPlot(): string {
  const x = (ratio: number) => LEFT + Math.min(ratio, MOST) / MOST * (WIDTH - LEFT - RIGHT);
  const figures = new Map(MACHINES.map(([file]) => [file, readFigures(file)]));
  const parts: string[] = [];
  let y = TOP;
  for (const [name, label] of CASES) {
    const top = y;
    for (const [file, , colour] of MACHINES) {
      const ratios = ratiosOf(figures.get(file)!, name);
      if (ratios.length === 0) continue;
      parts.push(bar({ ratios, colour, y }, x));
      y += BAR;
    }
    const middle = (top + y) / 2 + 4;
    parts.push(`<text x="${LEFT - 8}" y="${middle}" text-anchor="end">${label}</text>`);
    y += GAP;
  }
  const ticks = Array.from({ length: MOST + 1 }, (_, ratio) => {
    const style = ratio === 1 ? 'stroke="#c00"' : 'stroke="#ddd"';
    return `<line x1="${x(ratio)}" x2="${x(ratio)}" y1="${TOP - 8}" y2="${y}" ${style}/>` +
      `<text x="${x(ratio)}" y="${y + 16}" text-anchor="middle">${ratio}</text>`;
  });
  const step = (WIDTH - 40) / MACHINES.length;
  const legend = MACHINES.map(([, label, colour], i) =>
    `<rect x="${40 + i * step}" y="28" width="12" height="12" fill="${colour}"/>` +
    `<text x="${58 + i * step}" y="38">${label}</text>`
  );
  const height = y + 48;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" ` +
    `font-family="Helvetica, sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${height}" fill="white"/>`,
    `<text x="${LEFT}" y="18" font-weight="bold">Times the speed of llama.cpp, two threads</text>`,
    ...legend,
    ...ticks,
    ...parts,
    `<text x="${LEFT}" y="${y + 36}">1: as fast. Median of the runs, and their range where there ` +
    `are several; bench/results has them all.</text>`,
    "</svg>",
    "",
  ].join("\n");
}

/** Of all runs of a case, how many times llama.cpp's speed it reached. */
function ratiosOf(figures: readonly Figure[], name: string): number[] {
  return figures.filter(({ case: one, peer }) => one === name && BEST_BUILD.test(peer ?? ""))
    .flatMap(({ ratio }) => ratio ?? []);
}

/** The medians and ranges, a row a case. */
function runsTable(): string {
  const head = ["times llama.cpp's speed", ...MACHINES.map(([, label]) => label)];
  const figures = MACHINES.map(([file]) => readFigures(file));
  const rows = CASES.map(([name, label]) => [
    label,
    ...figures.map((all) => {
      const ratios = ratiosOf(all, name), digits = (x: number) => x.toFixed(2);
      if (ratios.length === 0) return "";
      if (ratios.length === 1) return `${digits(ratios[0]!)} (1 run)`;
      const [least, most] = [Math.min(...ratios), Math.max(...ratios)].map(digits);
      return `${digits(median(ratios))} (${least} to ${most}, ${ratios.length} runs)`;
    }),
  ]);
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, i) => i === 0 ? "---" : "--:")), ...rows.map(line)]
    .join("\n");
}

/** The document with the table that there is now. */
function withRuns(document: string): string {
  const [before, rest = ""] = document.split(MARKS[0]), [, after = ""] = rest.split(MARKS[1]);
  return `${before}${MARKS[0]}\n\n${runsTable()}\n\n${MARKS[1]}${after}`;
}

function bar(
  { ratios, colour, y }: {
    readonly ratios: readonly number[];
    readonly colour: string;
    readonly y: number;
  },
  x: (ratio: number) => number,
): string {
  const value = median(ratios);
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)];
  const [from, to] = [x(least).toFixed(1), x(most).toFixed(1)];
  const middle = y + BAR / 2;
  const whisker = least === most
    ? ""
    : `<line x1="${from}" x2="${to}" y1="${middle}" y2="${middle}" stroke="#222"/>`;
  return `<rect x="${LEFT}" y="${y}" width="${(x(value) - LEFT).toFixed(1)}" height="${BAR - 1}" ` +
    `fill="${colour}"><title>${value.toFixed(2)}</title></rect>${whisker}` +
    `<text x="${(Math.max(x(value), Number(to)) + 4).toFixed(1)}" y="${y + BAR - 3}" ` +
    `font-size="10">${value.toFixed(1)}</text>`;
}

function readFigures(file: string): Figure[] {
  const lines = Deno.readTextFileSync(new URL(file, RESULTS)).split("\n").filter(Boolean);
  return lines.map((line): Figure => JSON.parse(line));
}

if (import.meta.main) {
  Deno.writeTextFileSync(TARGET, cpuPlot());
  Deno.writeTextFileSync(TABLE, withRuns(Deno.readTextFileSync(TABLE)));
}
