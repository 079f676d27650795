// What fronts, workers and the queue say to each other: subjects of NATS, and messages as they lie in them.
//
// A job in the queue is a ticket of a few bytes: which front has it, and which model it is for. Who takes the ticket asks
// that front for the job itself, chunk by chunk, so no prompt is too large for a message or lies on the queue's disk,
// and a job whose front is gone is found out before anything is computed. Answers come back in numbered frames by core
// subjects; frames that a lost connection swallowed are asked for again by their number.

import type { AnswerEvent, AnswerJob, EngineCalls, EngineFigures, ServedModel } from "../engine.ts";
import type { JobFailure } from "../job_error.ts";

/** A text as one token of a subject: names of models hold dots and slashes. */
function tokenOf(name: string): string {
  return name.replace(
    /[^A-Za-z0-9_-]/gu,
    (sign) => `=${sign.codePointAt(0)!.toString(16).padStart(2, "0")}`,
  );
}

/** Where things are said. */
export const SUBJECTS = {
  /** All tickets. */
  jobs: "troodon.jobs.>",
  /** Tickets for a model, which any of its workers takes. */
  any: (model: string): string => `troodon.jobs.any.${tokenOf(model)}`,
  /** Tickets for the worker that holds the beginning of their prompts. */
  own: (worker: string): string => `troodon.jobs.own.${worker}`,
  /** Questions to a front: {@linkcode FrontQuestion}. */
  front: (front: string): string => `troodon.front.${front}`,
  /** Frames of an attempt. */
  frames: ({ front, job, attempt }: FrameAddress): string =>
    `troodon.frames.${front}.${job}.${attempt}`,
  /** Commands to a worker: {@linkcode WorkerCommand}. */
  worker: (worker: string): string => `troodon.worker.${worker}`,
  /** What workers say of themselves: {@linkcode WorkerStatus}. */
  status: "troodon.status",
  /** A front that is new here asks for that. */
  hello: "troodon.hello",
} as const;

/** Names of consumers: those of a model, and that of a worker. */
export const CONSUMERS = {
  any: (model: string): string => `any_${tokenOf(model)}`,
  own: (worker: string): string => `own_${worker}`,
} as const;

/** Whose frames. */
export interface FrameAddress {
  readonly front: string;
  readonly job: string;
  readonly attempt: string;
}

/** The address in a subject of frames. */
export function frameAddressOf(subject: string): FrameAddress {
  const [, , front, job, attempt] = subject.split(".");
  return { front: front!, job: job!, attempt: attempt! };
}

/** What lies in the queue. */
export interface Ticket {
  readonly job: string;
  readonly front: string;
}

/** What is to be done. */
export type QueuedWork =
  | { readonly kind: "answer"; readonly job: AnswerJob }
  | {
    readonly kind: "call";
    readonly call: keyof EngineCalls;
    readonly argument: EngineCalls[keyof EngineCalls]["argument"];
  };

/** What workers ask a front. */
export type FrontQuestion =
  /** Is the job still wanted, and may I do it? The answer is a {@linkcode BeginReply}. */
  | {
    readonly ask: "begin";
    readonly job: string;
    readonly attempt: string;
    readonly worker: string;
  }
  /** Bytes of the job, as it is for this attempt. */
  | {
    readonly ask: "chunk";
    readonly job: string;
    readonly attempt: string;
    readonly index: number;
  }
  /** I work on this no more, and another one shall: to be told, not answered. */
  | { readonly ask: "release"; readonly job: string; readonly attempt: string }
  /** I work on these: which are no longer wanted? The answer is an {@linkcode AliveReply}. */
  | {
    readonly ask: "alive";
    readonly attempts: readonly (readonly [job: string, attempt: string])[];
  };

/** Whether to begin: `gone`, nobody wants it any more; `busy`, another worker is at it. */
export type BeginReply =
  | { readonly state: "gone" | "busy" }
  | { readonly state: "take"; readonly chunks: number };

/** Attempts that are no longer wanted. */
export interface AliveReply {
  readonly gone: readonly string[];
}

/** How many frames of an attempt the front has; −1: it wants none. */
export interface FrameReply {
  readonly received: number;
}

/** What a front tells a worker. */
export type WorkerCommand =
  | { readonly tell: "cancel"; readonly attempt: string }
  | { readonly tell: "resend"; readonly attempt: string; readonly from: number };

/** What a worker says of itself, at every beat and when it changes. */
export interface WorkerStatus {
  readonly worker: string;
  /** Answers and calls that it does at once, and those that it does. */
  readonly places: number;
  readonly running: number;
  /** It is heard of so often, in milliseconds. */
  readonly beatMs: number;
  /** It takes no more. */
  readonly isLeaving: boolean;
  readonly models: readonly ServedModel[];
  readonly figures: EngineFigures;
}

/** What an attempt tells, in frames: events of an answer, and one of the others in the end. */
export type AttemptMessage =
  | { readonly event: AnswerEvent }
  | { readonly result: unknown }
  | { readonly failure: JobFailure }
  | { readonly done: true };

const ENCODER = new TextEncoder(), DECODER = new TextDecoder();
/** Key of an object that stands for an array of floats. */
const FLOATS = "$float32";

/** A message as bytes; vectors go as their bytes do. */
export function encodeMessage(message: unknown): Uint8Array<ArrayBuffer> {
  return ENCODER.encode(JSON.stringify(message, (_, value) => {
    if (!(value instanceof Float32Array)) return value;
    const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    return { [FLOATS]: bytes.toBase64() };
  }));
}

/** A message with vectors. */
export function decodeResult<T>(bytes: Uint8Array): T {
  return JSON.parse(DECODER.decode(bytes), (_, value) => {
    const floats = value?.[FLOATS];
    if (typeof floats !== "string") return value;
    return new Float32Array(Uint8Array.fromBase64(floats).buffer);
  });
}

/** A message without. */
export function decodeMessage<T>(bytes: Uint8Array): T {
  return JSON.parse(DECODER.decode(bytes));
}

/** Number of the frame, and whether a message ends with it. */
const HEADER = 5;

/**
 * A message in frames.
 *
 * @param options `from`: number of the first; `size`: most bytes of one.
 */
export function framesOf(
  message: Uint8Array,
  { from, size }: { readonly from: number; readonly size: number },
): Uint8Array<ArrayBuffer>[] {
  const room = size - HEADER;
  const count = Math.max(1, Math.ceil(message.length / room));
  return Array.from({ length: count }, (_, i) => {
    const body = message.subarray(i * room, (i + 1) * room);
    const frame = new Uint8Array(HEADER + body.length);
    new DataView(frame.buffer).setUint32(0, from + i);
    frame[HEADER - 1] = i === count - 1 ? 1 : 0;
    frame.set(body, HEADER);
    return frame;
  });
}

/** A frame apart. */
export function readFrame(
  frame: Uint8Array,
): { readonly number: number; readonly isLast: boolean; readonly body: Uint8Array } | undefined {
  if (frame.length < HEADER) return undefined;
  const number = new DataView(frame.buffer, frame.byteOffset).getUint32(0);
  return { number, isLast: frame[HEADER - 1] === 1, body: frame.subarray(HEADER) };
}

/** Pieces as one. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  if (pieces.length === 1) return pieces[0]!;
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
