// The rows of docs' table of number formats. The error is measured here, on normal variates of a fixed seed;
// perplexities are those of `deno task bench quality perplexity` and speeds those of `deno task bench formats`,
// read from the lines that lie in bench/results.

import { createRandom, nextDouble } from "../../engine/decode/sampling/random.ts";
import { formatBytes, formats, type NumberFormat, rowFormatsOf } from "../../quant/mod.ts";
import { ROOT } from "../support/task.ts";
import { alignedTable } from "./document_table.ts";

/** Columns of the table. */
export const HEADINGS: readonly string[] = [
  ...["format", "bits", "GGUF", "error", "SmolLM2", "Gemma 3", "WASM", "GPU"],
];
/** Those that hold numbers. */
const NUMBERS: readonly number[] = [1, 3, 4, 5, 6, 7];

/** Length of rows where the block is a row. */
const ROW = 1024;
const VALUES = 1 << 14;
/** Standard deviation of the values, as weights have it: Q4_B16 has no room for larger ones. */
const SPREAD = 0.05;
/** Models that are widened for every format. */
const WIDENED: readonly string[] = ["smollm2-135m"];

/** The table, aligned as `deno fmt` aligns it. */
export function formatsTable(): string {
  const rows = formatRows();
  // Columns that nobody has measured are left out.
  const filled = HEADINGS.map((_, i) => i).filter((i) => rows.some((row) => row[i] !== ""));
  const pick = <T>(cells: readonly T[]) => filled.map((i) => cells[i]!);
  const right = filled.flatMap((column, i) => NUMBERS.includes(column) ? [i] : []);
  return alignedTable(pick(HEADINGS), rows.map(pick), right);
}

/** A row a format, from many bits to few. */
export function formatRows(): string[][] {
  const values = normals();
  const quality = readLines("quality").flatMap(perplexityOf);
  const speeds = onOneDevice(readLines("formats").flatMap(speedOf));
  const all = [
    ...[...formats.values()].filter(({ use }) => !use),
    ...rowFormatsOf(ROW),
  ];
  return all
    .map((format) => ({ format, bits: 8 * format.blockBytes / format.blockSize }))
    .map((row) => ({ ...row, error: errorOf(row.format, values) }))
    .sort((a, b) => b.bits - a.bits || (a.error ?? 1) - (b.error ?? 1))
    .flatMap(({ format, bits, error }) => {
      const name = format.name.replace(`_${ROW}`, "");
      const cells = (label: string, shownError: string) => [
        ...[label, bits.toFixed(2), format.ggmlType === undefined ? "" : "yes", shownError],
        ...["smollm2-135m", "gemma3-270m"].map((model) =>
          quality.find((one) => one.format === label.split(" ").join(":") && one.model === model)
            ?.text ?? ""
        ),
      ];
      const speed = ["wasm", "gpu"].map((backend) => {
        const own = speeds.filter((one) => one.format === name && one.backend === backend);
        const best = Math.max(...own.map(({ value }) => value));
        return own.length === 0 ? "" : best.toFixed(best < 100 ? 1 : 0);
      });
      const calibrated = ["GPTQ", "AWQ"]
        .filter((method) => quality.some((one) => one.format === `${method}:${name}`))
        .map((method) => [...cells(`${method} ${name}`, ""), "", ""]);
      const shown = error === undefined ? "" : `${(100 * error).toPrecision(2)} %`;
      return [[...cells(name, shown), ...speed], ...calibrated];
    });
}

function normals(): Float32Array {
  const random = createRandom(1);
  return Float32Array.from({ length: VALUES }, () => {
    const radius = Math.sqrt(-2 * Math.log(1 - nextDouble(random)));
    return SPREAD * radius * Math.cos(2 * Math.PI * nextDouble(random));
  });
}

/** Root mean square of the error as a share of that of the values; undefined without an encoder. */
function errorOf(format: NumberFormat, values: Float32Array): number | undefined {
  if (!format.encode) return undefined;
  const bytes = new Uint8Array(formatBytes(format, values.length));
  const decoded = new Float32Array(values.length);
  format.encode(values, bytes);
  format.decode(bytes, decoded);
  let errors = 0, squares = 0;
  values.forEach((value, i) => {
    errors += (decoded[i]! - value) ** 2;
    squares += value ** 2;
  });
  return Math.sqrt(errors / squares);
}

type Line = Readonly<Record<string, unknown>>;

/** Lines of a bench, from all files whose names begin with it. */
function readLines(bench: string): Line[] {
  const folder = `${ROOT}/bench/results`;
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name)
    .filter((name) => name.startsWith(bench) && name.endsWith(".jsonl")).sort();
  return names.flatMap((name) =>
    Deno.readTextFileSync(`${folder}/${name}`).trim().split("\n")
      .map((line): Line => JSON.parse(line))
  );
}

/** `24.1 (+2.5 %)` of a line about perplexity; a star where the stream was widened for the format alone. */
function perplexityOf({ case: name, value, peerValue }: Line) {
  const found = /^perplexity (\S+) (\S+?)( at \d+)?$/.exec(name as string);
  if (!found) return [];
  const [, format, model, width] = found;
  const shown = (value as number) > 1e4
    ? (value as number).toExponential(0)
    : (value as number).toPrecision(4);
  const rise = 100 * ((value as number) / (peerValue as number) - 1);
  const share = rise > 999 ? "" : ` (${rise < 0 ? "" : "+"}${rise.toFixed(rise < 10 ? 2 : 0)} %)`;
  const star = width !== undefined && !WIDENED.includes(model!) ? " \\*" : "";
  return [{ format, model, text: `${shown}${share}${star}` }];
}

interface Speed {
  readonly format: string;
  readonly backend: string;
  readonly device: string;
  readonly value: number;
}

/** Weights a second of a line about speed, in 10⁹: one row of activations times the larger of the shapes. */
function speedOf({ backend, device, format, shape, gops }: Line): Speed[] {
  if (shape !== "4096x4096") return [];
  return [{ format, backend, device, value: (gops as number) / 2 } as Speed];
}

/** Of several machines of a backend the one on which most formats were measured: figures of two do not compare. */
function onOneDevice(speeds: readonly Speed[]): readonly Speed[] {
  return [...Map.groupBy(speeds, ({ backend }) => backend).values()].flatMap((own) => {
    const devices = [...Map.groupBy(own, ({ device }) => device).values()];
    return devices.sort((a, b) => b.length - a.length)[0]!;
  });
}
