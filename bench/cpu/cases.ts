// The cases of `deno task bench cpu`, each a generator of what it measured. Who takes turns in them is in alternate.ts.

import { median } from "../support/figures.ts";
import type { BenchModel } from "../support/models.ts";
import type { Reply } from "../support/runner.ts";
import { alternate, attempt, FAR, type Measure } from "./alternate.ts";
import { startBusy } from "./busy.ts";
import type { CaseInput, CaseName, Contender, Measured, Samples } from "./case.ts";
import type { CaseWork, Peer } from "./peers.ts";
import { rows } from "./rows.ts";
import { schema } from "./schema.ts";
import { speculation } from "./speculation.ts";
import { readingMs } from "./reading.ts";

/** A case. */
export interface CpuCase {
  readonly name: CaseName;
  /** Also for models with random weights. */
  readonly forLargeModels: boolean;
  /** Only with the most of the thread counts: what takes minutes says no more with each of them. */
  readonly withMostThreads?: boolean;
  run(input: CaseInput): AsyncGenerator<Measured>;
}

const PREFIX = 32;
const FIRST_PROMPT = 30;
const SHARED_PROMPT = 1000;
const QUESTION = 8;
/** Answers beside each other: few, for peers too, and many. */
const BATCHES = [8, 32] as const;
const SLACK = 32;
/** From this context on three rounds have to do. */
const LONG_CONTEXT = 2000;
const LONG_ROUNDS = 3;

const rate = (tokens: number, { ms = NaN }: Reply): number => tokens / ms * 1000;

/** Who takes part; the others are named with the reason. */
function able({ contenders, model }: CaseInput, work: CaseWork, context = 0): Contender[] {
  return contenders.filter(({ name, peer }) => {
    const why = peer && (peer.refuses[work] ?? whyNot(peer, model, context));
    if (why !== undefined) console.error(`left out: ${name}, ${why}`);
    return why === undefined;
  });
}

function whyNot(
  { takesTokens, longest }: Peer,
  { isOwnFormat, isRandom }: BenchModel,
  context: number,
): string | undefined {
  if (isOwnFormat) return "it does not read the number format of this model";
  if (isRandom && !takesTokens) return "it takes text, and random weights have none";
  return context > longest
    ? `to end in time it is asked for ${longest} tokens at most, not for ${context}`
    : undefined;
}

async function* decode(input: CaseInput): AsyncGenerator<Measured> {
  const { model: { ids }, bounds, options: { rounds, decode: count } } = input;
  const order = { op: "decode", ids: ids.slice(0, PREFIX), count } as const;
  const measure: Measure = async (runner) => rate(count, await runner.ask(order));
  const samples = await alternate(able(input, "decode"), { rounds }, measure);
  const bound = bounds.decode(PREFIX + count / 2);
  yield { name: "decode", unit: "tokens/s", samples, bound };
}

async function* context(input: CaseInput): AsyncGenerator<Measured> {
  const { model: { ids }, bounds, options: { rounds, contexts, decode: count } } = input;
  for (const length of contexts) {
    const order = { op: "decode", ids: ids.slice(0, length), count } as const;
    const samples = await alternate(
      able(input, "decode", length),
      {
        rounds: length > LONG_CONTEXT ? Math.min(rounds, LONG_ROUNDS) : rounds,
        context: length + count + SLACK,
      },
      async (runner) => rate(count, await runner.ask(order)),
    );
    const bound = bounds.decode(length + count / 2);
    yield { name: `decode context ${length}`, unit: "tokens/s", samples, bound };
  }
}

async function* prefill(input: CaseInput): AsyncGenerator<Measured> {
  const { model: { ids }, bounds, options: { rounds, prompts } } = input;
  for (const length of prompts) {
    const order = { op: "prefill", ids: ids.slice(0, length) } as const;
    const samples = await alternate(
      able(input, "prefill", length),
      { rounds, context: Math.max(1024, length + SLACK) },
      async (runner) => rate(length, await runner.ask(order)),
    );
    const bound = bounds.prefill(length);
    yield { name: `prefill ${length}`, unit: "tokens/s", samples, bound };
  }
}

/** A question behind a text that another session has computed; then how many times sooner than behind a new one. */
async function* shared(input: CaseInput): AsyncGenerator<Measured> {
  const { contenders, model: { ids }, options: { rounds } } = input;
  const own = contenders.filter(({ peer }) => !peer);
  const text = ids.slice(0, SHARED_PROMPT), ask = [...text, ...ids.slice(0, QUESTION)];
  const times: number[] = [];
  const samples = await alternate(own, { rounds, context: ask.length + SLACK }, async (runner) => {
    const { ms: fresh = NaN } = await runner.ask({ op: "prefill", ids: text });
    const { ms = NaN } = await runner.ask({ op: "again", ids: ask });
    times.push(fresh / ms);
    return ms;
  });
  yield { name: `first token behind ${SHARED_PROMPT} shared`, unit: "ms", samples };
  // The first round warms up.
  yield {
    name: "the same, times sooner than without",
    unit: "of 1",
    samples: new Map([[own[0]!, times.slice(1)]]),
  };
}

/**
 * Answers beside each other through generate(), beside the executable alone, and peers of the fewer ones: tokens of all
 * together. Then how many times those of the many are those of the few.
 */
async function* batch(input: CaseInput): AsyncGenerator<Measured> {
  const { model: { ids }, bounds, bare, options: { rounds, decode } } = input;
  const count = Math.min(decode, 32); // of each
  const [own, ...peers] = able(input, "batch");
  const medians: number[] = [];
  for (const answers of BATCHES) {
    const prompts = Array.from(
      { length: answers },
      (_, row) => Array.from({ length: PREFIX }, (_, i) => ids[(row * PREFIX + i) % ids.length]!),
    );
    const samples = await alternate(
      [own!, bare, ...answers === BATCHES[0] ? peers : []],
      { rounds, sequences: answers, context: PREFIX + count + SLACK },
      async (runner) => rate(answers * count, await runner.ask({ op: "batch", prompts, count })),
    );
    medians.push(median(samples.get(own!)!));
    const bound = bounds.decode(PREFIX + count / 2, answers);
    yield { name: `decode ${answers} queries`, unit: "tokens/s", samples, bound };
    if (answers !== BATCHES[0]) continue;
    const without = new Map([...samples].filter(([one]) => one !== own));
    yield { name: `decode ${answers} sessions`, unit: "tokens/s", samples: without, bound };
  }
  const times = new Map([[own!, [medians[1]! / medians[0]!]]]);
  yield { name: `decode ${BATCHES[1]} queries, times ${BATCHES[0]}`, unit: "of 1", samples: times };
}

/** With all processors in use and one of them taken away; then as a part of what is reached without. */
async function* busy(input: CaseInput): AsyncGenerator<Measured> {
  const { model: { ids }, threads, options: { rounds, decode: count } } = input;
  if (threads === 1) return;
  const order = { op: "decode", ids: ids.slice(0, PREFIX), count: Math.min(count, 32) } as const;
  const contenders = able(input, "busy");
  const parts = new Map(contenders.map((contender) => [contender, [] as number[]]));
  const samples = await alternate(
    contenders,
    { rounds },
    async (runner, contender) => {
      const alone = rate(order.count, await runner.ask(order));
      using _busy = startBusy(threads);
      const disturbed = rate(order.count, await runner.ask(order));
      parts.get(contender)!.push(disturbed / alone);
      return disturbed;
    },
  );
  yield { name: "decode beside a busy thread", unit: "tokens/s", samples };
  const parted = new Map([...samples.keys()].map((one) => [one, parts.get(one)!]));
  yield { name: "the same, part of undisturbed", unit: "of 1", samples: parted };
}

async function* memory(input: CaseInput): AsyncGenerator<Measured> {
  const { model: { ids }, options: { decode: count } } = input;
  const samples = await alternate(able(input, "memory"), { rounds: 1 }, async (runner) => {
    await runner.ask({ op: "prefill", ids: ids.slice(0, 512) });
    await runner.ask({ op: "decode", ids: ids.slice(0, PREFIX), count });
    return (await runner.ask({ op: "memory" })).bytes! / 1e6;
  });
  yield { name: "memory", unit: "MB", samples };
}

/** Fresh processes: from the start to the first token of a short prompt, and what of it is loading. */
async function* start(input: CaseInput): AsyncGenerator<Measured> {
  const { model: { ids, path }, options: { rounds } } = input;
  const contenders = able(input, "start");
  const first = new Map(contenders.map((contender) => [contender, [] as number[]]));
  const load = new Map(contenders.map((contender) => [contender, [] as number[]]));
  const own = contenders.find(({ peer }) => !peer)!;
  const reading: number[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const contender of round % 2 ? contenders.toReversed() : contenders) {
      if (contender.peer?.isFarBehind && round >= FAR.rounds) continue;
      reading.push(readingMs(path));
      await attempt(contender, async () => {
        const runner = await contender.start({});
        const prompt = ids.slice(0, FIRST_PROMPT);
        const { ms = NaN } = await runner.ask({ op: "prefill", ids: prompt });
        first.get(contender)!.push(runner.startMs + ms);
        load.get(contender)!.push(runner.loadMs);
        await runner.close();
      });
    }
  }
  for (const [contender, values] of first) {
    if (values.length > 0) continue;
    first.delete(contender);
    load.delete(contender);
  }
  yield { name: "first token", unit: "ms", samples: first };
  yield { name: "load", unit: "ms", samples: load };
  const reader: Contender = { ...own, name: "reading the file" };
  const beside: Samples = new Map([[own, load.get(own)!], [reader, reading]]);
  yield { name: "load", unit: "ms", samples: beside };
}

/** All cases in the order in which they run. */
export const CASES: readonly CpuCase[] = [
  { name: "decode", forLargeModels: true, run: decode },
  { name: "prefill", forLargeModels: true, run: prefill },
  { name: "context", forLargeModels: false, withMostThreads: true, run: context },
  { name: "shared", forLargeModels: false, withMostThreads: true, run: shared },
  { name: "batch", forLargeModels: true, run: batch },
  { name: "rows", forLargeModels: true, run: rows },
  { name: "speculation", forLargeModels: false, withMostThreads: true, run: speculation },
  { name: "schema", forLargeModels: false, withMostThreads: true, run: schema },
  { name: "busy", forLargeModels: false, run: busy },
  { name: "memory", forLargeModels: true, run: memory },
  { name: "start", forLargeModels: true, run: start },
];
