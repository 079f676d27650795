// The load: streams of the completions endpoint that both servers have, read as they come. One generator for both, over
// plain `fetch`; a token's time is that at which its event was read.

/** One request. */
export interface Request {
  readonly prompt: readonly number[];
  readonly tokens: number;
  /** Events after which the client leaves. */
  readonly leavesAfter?: number;
}

/** What a stream saw, in ms. */
interface StreamTimes {
  readonly firstMs: number;
  /** Between two events. */
  readonly gaps: readonly number[];
  readonly tokens: number;
}

/** Figures of a run. */
export interface LoadResult {
  readonly seconds: number;
  readonly tokens: number;
  readonly firstMs: readonly number[];
  readonly gapMs: readonly number[];
}

/** Where the requests go. */
export interface Target {
  readonly url: string;
  readonly model: string;
}

/**
 * Requests of mixed lengths: prompts of 16 to 256 tokens, answers of 16 to 128, the same for the same seed. Prompts are
 * drawn from a text's tokens, so that none begins like another one.
 */
export function mixedRequests(
  ids: readonly number[],
  { count, seed }: { readonly count: number; readonly seed: number },
): Request[] {
  let state = seed;
  const below = (limit: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 2 ** 32 * limit);
  };
  return Array.from({ length: count }, () => ({
    prompt: Array.from({ length: 16 + below(241) }, () => ids[1 + below(ids.length - 1)]!),
    tokens: 16 + below(113),
  }));
}

/** Sends all requests, so many at a time. */
export async function runLoad(
  target: Target,
  { requests, streams }: { readonly requests: readonly Request[]; readonly streams: number },
): Promise<LoadResult> {
  const start = performance.now(), results: StreamTimes[] = [];
  let next = 0;
  await Promise.all(Array.from({ length: streams }, async () => {
    while (next < requests.length) results.push(await runStream(target, requests[next++]!));
  }));
  return {
    seconds: (performance.now() - start) / 1000,
    tokens: results.reduce((sum, { tokens }) => sum + tokens, 0),
    firstMs: results.map(({ firstMs }) => firstMs),
    gapMs: results.flatMap(({ gaps }) => gaps),
  };
}

async function runStream({ url, model }: Target, request: Request): Promise<StreamTimes> {
  const { prompt, tokens: wanted, leavesAfter = Infinity } = request;
  const start = performance.now();
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      ...{ model, prompt, max_tokens: wanted, temperature: 0, ignore_eos: true },
      ...{ stream: true, stream_options: { include_usage: true } },
    }),
  });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  const gaps: number[] = [];
  let firstMs = 0, last = 0, events = 0, tokens = 0;
  for await (const line of lines(response.body!)) {
    if (!line.startsWith("data: {")) continue;
    const event = JSON.parse(line.slice(6)) as CompletionEvent;
    tokens = event.usage?.completion_tokens ?? tokens;
    if (!event.choices?.[0]?.text) continue;
    const now = performance.now();
    if (events++ === 0) firstMs = now - start;
    else gaps.push(now - last);
    last = now;
    // Leaving the loop cancels the body, which closes the connection.
    if (events >= leavesAfter) return { firstMs, gaps, tokens: events };
  }
  if (tokens !== wanted) throw new Error(`${url}: ${tokens} tokens instead of ${wanted}`);
  return { firstMs, gaps, tokens };
}

interface CompletionEvent {
  readonly choices?: readonly { readonly text?: string }[];
  readonly usage?: { readonly completion_tokens?: number } | null;
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const bytes of body) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = parts.pop()!;
    yield* parts;
  }
}

/** The value below which a share of all lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}
