// `deno task bench edge`: the cold start of examples/edge with MiniLM in 8 bit under a platform's restrictions (tools/support/edge.ts):
// from the start of a process to its first answer, less what fetching the model took. A process with an empty handler takes
// turns with it: what that takes is Deno's own start, which platforms have behind them. The least of the rounds counts:
// whatever else a machine does only adds.

import { pullModel } from "../../engine/formats/hub/pull.ts";
import { quantize } from "../../mod.ts";
import { type EdgeFiles, prepareEdge } from "../../tools/support/edge.ts";
import { benchCache } from "../support/bench_cache.ts";
import { type Figure, machineName } from "../support/figures.ts";

const BODY = { texts: ["the sea is calm"] };

/** What the platform allows, and the mark that was set for the start. */
const MOST = { ms: 300, codeMB: 5, memoryMB: 512 };

/** MiniLM in 8 bit, made at the first call. */
async function smallMiniLm(): Promise<EdgeFiles> {
  const folder = `${await benchCache("edge")}/minilm-q8_0`;
  const isThere = await Deno.stat(folder).then(() => true, () => false);
  if (!isThere) await quantize(await pullModel("minilm"), folder, { format: "q8_0" });
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name);
  return Object.fromEntries(
    await Promise.all(
      names.map(async (name) => [name, await Deno.readFile(`${folder}/${name}`)] as const),
    ),
  );
}

/** Figures of start, code and memory. */
export async function* edgeBench(
  { rounds }: { readonly rounds: number },
): AsyncGenerator<Figure> {
  await using build = await prepareEdge(await smallMiniLm());
  const least = {
    empty: Infinity,
    whole: Infinity,
    load: Infinity,
    next: Infinity,
    processor: Infinity,
  };
  let peak = 0;
  const note = (name: keyof typeof least, ms: number) => least[name] = Math.min(least[name], ms);
  for (let round = 0; round < rounds; round++) {
    const started = performance.now();
    await using empty = await build.start("empty.js");
    await empty.ask("/embed", BODY);
    note("empty", performance.now() - started);
    const idle = empty.processorMs() ?? NaN;
    const begin = performance.now();
    await using edge = await build.start();
    const { timings } = await edge.ask("/embed", BODY);
    note("whole", performance.now() - begin - timings.fetch!);
    note("load", timings.load!);
    note("processor", (edge.processorMs() ?? NaN) - idle);
    const second = performance.now();
    await edge.ask("/embed", BODY);
    note("next", performance.now() - second);
    peak = Math.max(peak, edge.peakBytes() ?? NaN);
  }
  const figure = (name: string, unit: string, value: number, limit?: number): Figure => ({
    ...{ bench: "edge", case: name, unit, value },
    ...{ peer: limit === undefined ? null : "limit", peerValue: limit ?? null },
    ...{ ratio: limit === undefined ? null : limit / value, share: null, machine: machineName() },
  });
  yield figure("cold start to first answer, besides fetching", "ms", least.whole, MOST.ms);
  yield figure("of this, Deno's start and an empty answer", "ms", least.empty);
  yield figure("of this, opening the model", "ms", least.load);
  yield figure("processor time of all threads, besides Deno's start", "ms", least.processor);
  yield figure("a later answer", "ms", least.next);
  yield figure("code", "MB", build.bytes / 1e6, MOST.codeMB);
  yield figure("peak memory of the process", "MB", peak / 1e6, MOST.memoryMB);
}
