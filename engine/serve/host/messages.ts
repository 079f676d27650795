// What the thread of the server and the thread that computes say to each other: plain data. Each has the number of its
// job. The worker puts all that it has to say in a turn into one message, since thirty-two answers of one step are one
// piece of news.
//
// A reader says how many events of an answer it can take; the worker stops reading the answer when these are used up, and
// an answer that nobody reads computes nothing. So what lies between the threads is bounded, however slow a client is.

import type { AnswerEvent, AnswerJob, EngineCalls } from "../engine.ts";
import type { JobFailure } from "../job_error.ts";
import type { ModelEntry } from "./models.ts";

/** Events of an answer that may be under way; half of them are asked for anew when they have been read. */
export const WINDOW = 32;

/** What a worker computes with. */
export interface WorkerSettings {
  readonly entries: readonly ServedEntry[];
  readonly maxMemory?: number | undefined;
  /** Who gives the GPU, as `openDawn` takes it: the giver itself stays in its thread. */
  readonly gpu?: string | undefined;
}

/** A model as a worker can be told of it. */
export interface ServedEntry extends Omit<ModelEntry, "options"> {
  readonly options: Omit<ModelEntry["options"], "gpu" | "signal" | "onProgress">;
}

/** The first message to a worker: where all others come from. */
export interface WorkerOpening {
  readonly settings: WorkerSettings;
  readonly port: MessagePort;
  /** Who makes threads for the worker (wasm/threads.ts). */
  readonly threads: MessagePort;
}

/** To the worker. */
export type Request =
  | { readonly kind: "answer"; readonly id: number; readonly job: AnswerJob }
  | {
    readonly kind: "call";
    readonly id: number;
    readonly name: keyof EngineCalls;
    readonly argument: EngineCalls[keyof EngineCalls]["argument"];
  }
  | { readonly kind: "more"; readonly id: number; readonly count: number }
  | { readonly kind: "cancel"; readonly id: number }
  | { readonly kind: "close" };

/** From the worker. */
export type Reply =
  | { readonly kind: "event"; readonly id: number; readonly event: AnswerEvent }
  | { readonly kind: "done"; readonly id: number; readonly result?: unknown }
  | { readonly kind: "failed"; readonly id: number; readonly failure: JobFailure }
  | { readonly kind: "closed" };
