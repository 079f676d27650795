// llama.cpp as the peer of `deno task bench gpu`: its own llama-bench, where a path to one is given, on the same file and
// card in the same run; for many sequences llama-batched-bench, which lies beside it. Both print JSON lines.

import { type Figure, median } from "../support/figures.ts";

/** What the peer is asked for. */
export interface PeerOrder {
  /** Path of llama-bench. */
  readonly program: string;
  /** The model's file. */
  readonly path: string;
  readonly prompts: readonly number[];
  readonly contexts: readonly number[];
  readonly decode: number;
  readonly queries: readonly number[];
  readonly rounds: number;
}

/** What the peer reached: tokens a second by how our cases begin, and milliseconds of a process that makes one token. */
export interface PeerFigures {
  readonly name: string;
  readonly values: ReadonlyMap<string, number>;
}

/** Case of a first token. */
export const FIRST_TOKEN = "process start to first token";

/** The figures of the peer; those that its build cannot give are named on standard error. */
export async function peerFigures(order: PeerOrder): Promise<PeerFigures> {
  const { program, path, prompts, contexts, decode, rounds } = order;
  const values = new Map<string, number>();
  let name = "llama.cpp";
  const shallow = contexts.includes(0);
  const runs = [
    ["-p", prompts.join(), "-n", shallow ? `${decode}` : "0"],
    ...contexts.filter((context) => context > 0)
      .map((context) => ["-p", "0", "-n", `${decode}`, "-d", `${context}`]),
  ];
  for (const run of runs) {
    const rows = await benchRows(program, ["-m", path, ...run, "-r", `${rounds}`, "-o", "jsonl"]);
    for (const { n_prompt = 0, n_depth = 0, samples_ts = [], ...row } of rows) {
      const key = n_prompt > 0 ? `prefill ${n_prompt}` : `decode at ${n_depth}`;
      values.set(key, median(samples_ts));
      name = `llama.cpp ${row.build_commit ?? ""} (${row.backends ?? row.gpu_info ?? "?"})`;
    }
  }
  for (const [count, rate] of await batchRates(order)) {
    values.set(`decode of ${count} queries`, rate);
  }
  const times: number[] = [];
  for (let round = -1; round < rounds; round++) {
    const start = performance.now();
    const rows = await benchRows(program, [
      "-m",
      path,
      "-p",
      "0",
      "-n",
      "1",
      "-r",
      "1",
      "-o",
      "jsonl",
    ]);
    if (round >= 0 && rows.length > 0) times.push(performance.now() - start);
  }
  if (times.length > 0) values.set(FIRST_TOKEN, median(times));
  return { name, values };
}

/** What of a row of llama-bench is read here. */
interface BenchRow {
  readonly n_prompt?: number;
  readonly n_depth?: number;
  readonly samples_ts?: readonly number[];
  readonly build_commit?: string;
  readonly backends?: string;
  readonly gpu_info?: string;
}

/** Attention that is fused, which some builds want to be asked for and others do by themselves. */
const FUSED = [["-fa", "1"], ["-fa", "on"], []];

async function benchRows(program: string, args: readonly string[]): Promise<BenchRow[]> {
  for (const fused of FUSED) {
    const rows = await jsonRows<BenchRow>(program, [...args, "-ngl", "99", ...fused]);
    if (rows) return rows;
  }
  console.error(`absent: llama-bench ${args.join(" ")} fails`);
  return [];
}

async function batchRates(
  { program, path, decode, queries }: PeerOrder,
): Promise<[count: number, rate: number][]> {
  const batched = program.replace(/llama-bench(?=(\.exe)?$)/, "llama-batched-bench");
  const most = Math.max(...queries), prompt = 16;
  const args = ["-m", path, "-c", `${most * (decode + prompt)}`, "-b", "2048", "-ub", "512"];
  const sizes = ["-npp", `${prompt}`, "-ntg", `${decode}`, "-npl", queries.join(), "-ngl", "99"];
  for (const fused of FUSED) {
    const all = [...args, ...sizes, ...fused, "--output-format", "jsonl"];
    // One pass that does not count.
    const rows = await jsonRows<{ pl: number; speed_tg: number }>(batched, all) &&
      await jsonRows<{ pl: number; speed_tg: number }>(batched, all);
    if (rows) return rows.map(({ pl, speed_tg }) => [pl, speed_tg]);
  }
  console.error(`absent: ${batched}, or it fails`);
  return [];
}

/** The JSON lines that a program prints; undefined if it fails or is not there. */
async function jsonRows<T>(program: string, args: readonly string[]): Promise<T[] | undefined> {
  try {
    const { success, stdout } = await new Deno.Command(program, { args: [...args], stderr: "null" })
      .output();
    if (!success) return undefined;
    const lines = new TextDecoder().decode(stdout).split("\n");
    return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as T);
  } catch {
    return undefined;
  }
}

/** The peer's value for one of our cases: the key that the case begins with. */
export function peerValueOf(
  { values }: PeerFigures,
  { case: name, unit }: Pick<Figure, "case" | "unit">,
): number | undefined {
  if (unit !== "tokens/s" && !name.startsWith(FIRST_TOKEN)) return undefined;
  for (const [key, value] of values) {
    if (name.startsWith(key) && !/^\d/.test(name.slice(key.length))) return value;
  }
}
