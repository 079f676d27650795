// `deno task bench onnx`: ONNX graphs on this engine, on onnxruntime-web (WASM SIMD; in Deno and in
// Chromium, of which the faster counts) and on native onnxruntime, same inputs, same threads, in turns in
// one run. Every engine is a process of its own; first outputs are compared, so that nobody is fast at
// something else. `share` is the part of what float32 multiply-adds in registers reach on the same threads,
// measured before and after the rounds.

import { openOnnx } from "../../engine/onnx/file/open_onnx.ts";
import { openDevice } from "../../engine/run/devices.ts";
import { multiplyAdds } from "../../engine/run/op_table.ts";
import { planGraph } from "../../engine/onnx/running/plan_graph.ts";
import { type Figure, machineName, median, ratioOf } from "../support/figures.ts";
import { machineLimits } from "../support/limits.ts";
import { type Runner, startOwn, startProgram, startRunner } from "../support/runner.ts";
import { GRAPH_CASES, type GraphCase } from "./cases.ts";
import { benchFolder, type Peers, preparePeers, VERSIONS } from "./peers.ts";

/** What to measure. */
export interface OnnxBenchOptions {
  readonly threads: readonly number[];
  /** Rounds that count; in each every engine runs for a while. */
  readonly rounds: number;
  readonly peer: boolean;
  /** Native onnxruntime once more, held to AVX2: what 128-bit vectors of WASM compare with. */
  readonly isAvx2Wanted: boolean;
  /** Parts of names of cases; all without. */
  readonly filter: readonly string[];
}

/** Milliseconds that an engine runs in a round. */
const ROUND_MS = 250;

interface Contender {
  readonly name: string;
  readonly kind: "own" | "web" | "native" | "avx2";
  readonly runner: Runner;
  runs: number;
  /** Milliseconds a run, by round. */
  readonly times: number[];
}

/** All figures, handed out as they are measured. */
export async function* onnxBench(options: OnnxBenchOptions): AsyncGenerator<Figure> {
  const { filter, threads, rounds } = options;
  const folder = benchFolder();
  const peers = options.peer ? await preparePeers(options) : undefined;
  const cases = GRAPH_CASES.filter(({ name }) =>
    filter.length === 0 || filter.some((part) => name.includes(part))
  );
  for (const one of cases) {
    const path = await one.model(folder);
    const work = one.counted && await operationsOf(path, one.counted);
    for (const count of threads) {
      const limit = work ? [(await machineLimits(count)).float] : [];
      const contenders = await startAll(one, path, count, peers);
      try {
        await warmUp(contenders, one.cosine);
        for (let round = 0; round < rounds; round++) {
          for (const contender of round % 2 === 0 ? contenders : contenders.toReversed()) {
            const { ms = NaN } = await contender.runner.ask({ op: "graph", runs: contender.runs });
            contender.times.push(ms);
          }
        }
      } finally {
        for (const { runner } of contenders) await runner.close();
      }
      if (work) limit.push((await machineLimits(count)).float);
      const leastMs = work ? work / Math.max(...limit) / 1e6 : null;
      yield* figuresOf(one, { threads: count, contenders, leastMs });
    }
  }
}

/** Multiplications and additions of a run. */
async function operationsOf(
  path: string,
  bind: Readonly<Record<string, number>>,
): Promise<number> {
  const model = openOnnx(path);
  try {
    const { plan, bindings } = planGraph(model, { bind, device: await openDevice("wasm", {}) });
    return 2 * plan!.steps.reduce((sum, { node }) => sum + multiplyAdds(node, bindings), 0);
  } finally {
    model.close();
  }
}

async function startAll(
  { inputs, precision }: GraphCase,
  path: string,
  threads: number,
  peers: Peers | undefined,
): Promise<Contender[]> {
  const rules = JSON.stringify(inputs);
  const contenders: Contender[] = [];
  const add = (name: string, kind: Contender["kind"], runner: Runner) =>
    contenders.push({ name, kind, runner, runs: 1, times: [] });
  add(
    "troodon",
    "own",
    await startOwn(["bench/onnx/troodon.ts", path, `${threads}`, rules, precision]),
  );
  if (!peers) return contenders;
  const { packages, python, avx2, chromium } = peers;
  const plain = ["--no-lock", "--no-config", "--node-modules-dir=manual"];
  const web = `onnxruntime-web ${VERSIONS.web}`;
  add(
    `${web} in Deno`,
    "web",
    await startRunner([
      ...plain,
      ...["bench/onnx/onnxruntime_web.ts", path, `${threads}`, rules, packages],
    ]),
  );
  if (chromium) {
    add(
      `${web} in Chromium`,
      "web",
      await startRunner([
        ...plain,
        ...["bench/onnx/chromium.ts", path, `${threads}`, rules, packages, chromium],
      ]),
    );
  }
  if (python) {
    const args = ["bench/onnx/native.py", path, `${threads}`, rules];
    const native = `onnxruntime ${VERSIONS.native}, native`;
    add(native, "native", await startProgram(python, args));
    if (avx2) add(`${native}, held to AVX2`, "avx2", await startProgram(python, args, avx2));
  }
  return contenders;
}

/** Compares results and finds out how many runs fill a round. */
async function warmUp(contenders: readonly Contender[], least: number): Promise<void> {
  let expected: readonly number[] | undefined;
  for (const contender of contenders) {
    const { vector = [] } = await contender.runner.ask({ op: "graph", runs: 3 });
    const { ms = 1 } = await contender.runner.ask({ op: "graph", runs: 2 });
    contender.runs = Math.max(1, Math.round(ROUND_MS / ms));
    expected ??= vector;
    const similar = cosine(expected, vector);
    if (!(similar >= least)) {
      throw new Error(`${contender.name} gives something else: cosine ${similar}`);
    }
  }
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const product = a.reduce((sum, value, i) => sum + value * b[i]!, 0);
  const norms = Math.hypot(...a) * Math.hypot(...b);
  return norms === 0 ? Number(a.every((value, i) => value === b[i])) : product / norms;
}

interface Measured {
  readonly threads: number;
  readonly contenders: readonly Contender[];
  /** Milliseconds of a run at the machine's limit. */
  readonly leastMs: number | null;
}

function* figuresOf(
  { name, unit }: GraphCase,
  { threads, contenders, leastMs }: Measured,
): Generator<Figure> {
  const value = ({ times }: Contender) =>
    unit === "ms" ? median(times) : median(times.map((ms) => 1000 / ms));
  const best = (kind: Contender["kind"]) =>
    contenders.filter((contender) => contender.kind === kind)
      .toSorted((a, b) => median(a.times) - median(b.times))[0];
  const own = best("own")!;
  const others = (["web", "native", "avx2"] as const).map(best).filter((one) => one);
  for (const other of others.length > 0 ? others : [undefined]) {
    const peerValue = other ? value(other) : null;
    yield {
      bench: "onnx",
      case: `${name}, ${threads} thread${threads === 1 ? "" : "s"}`,
      unit,
      value: value(own),
      peer: other?.name ?? null,
      peerValue,
      ratio: ratioOf(unit, value(own), peerValue),
      share: leastMs === null ? null : leastMs / median(own.times),
      machine: machineName(),
    };
  }
}
