// What a server is made with, and its bounds with their defaults.

import type { Engine } from "../engine.ts";
import type { PageAsset } from "../page/page.ts";
import type { BodyLimits } from "./request_body.ts";

/** Bounds of requests. */
export interface Limits extends BodyLimits {
  /** Answers, vectors and scores that may be wanted at once, waiting ones among them; beyond it is 429. */
  readonly answers: number;
  /** Most milliseconds until the end of an answer. */
  readonly answerMs: number;
  /** After so many milliseconds of silence a stream gets a comment, so that nobody on the way closes it. */
  readonly pingMs: number;
  /**
   * A stream begins after so many milliseconds, first token or not. Before, Deno 2.9 does not tell that a client has left
   * whose body came in more than one piece (of some 500 bytes); and what is on the way closes silent connections.
   */
  readonly headMs: number;
}

/** The bounds where nobody says others. */
export const DEFAULT_LIMITS: Limits = {
  bodyBytes: 16 << 20,
  bodyMs: 30_000,
  bodyDepth: 200,
  answers: 256,
  answerMs: 3_600_000,
  pingMs: 15_000,
  headMs: 1000,
};

/** A line of the log. */
export type LogEntry = Readonly<Record<string, string | number | boolean | undefined>>;

/** What a server is made with. */
export interface AppOptions {
  readonly engine: Engine;
  /** One of them must come with every request but those for health and the page. None: everybody may ask. */
  readonly keys?: readonly string[];
  /** Origins whose pages may ask, or `*`; none by default. */
  readonly cors?: readonly string[];
  readonly limits?: Partial<Limits>;
  /** Takes a line a request; nothing is logged by default. */
  readonly log?: (entry: LogEntry) => void;
  /** The page's files by path, read when one is first asked for. */
  readonly page?: () => Promise<ReadonlyMap<string, PageAsset>>;
  /** Whether models that must be there are; `/ready` says so. */
  readonly isReady?: () => boolean;
  /** Told by /props. */
  readonly version?: string;
}
