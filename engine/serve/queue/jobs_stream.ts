// The stream of JetStream in which tickets lie, and its consumers. It is a work queue: a ticket is there until somebody
// has done its job and says so; who takes one and dies is found out by silence, and the next one gets it.

import type { ConsumerConfig, JetStreamManager } from "@nats-io/jetstream";
import { CONSUMERS, SUBJECTS } from "./wire.ts";

/** Name of the stream. */
export const JOBS = "TROODON_JOBS";

/** Where the server tells that it gave a ticket up. */
export const GIVEN_UP = `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${JOBS}.>`;

const NANOS = 1_000_000;
/** A ticket that nobody wants any more is dropped when it is taken; where nobody takes it, after this. */
const LONGEST_MS = 24 * 3_600_000;
/** What a worker leaves behind. */
const FORGOTTEN_MS = 300_000;
const NOT_FOUND = 404;

/** Whether an answer of JetStream says that something is not there. */
function isMissing(error: unknown): boolean {
  return (error as { readonly status?: number }).status === NOT_FOUND ||
    (error as Error)?.name === "StreamNotFoundError";
}

/**
 * Makes the stream where it is not there.
 *
 * @returns When it was made, which tells it from another one with its name.
 */
export async function ensureJobs(
  manager: JetStreamManager,
  { maxJobs }: { readonly maxJobs: number },
): Promise<string> {
  try {
    return (await manager.streams.info(JOBS)).created;
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  const { created } = await manager.streams.add({
    ...{ name: JOBS, subjects: [SUBJECTS.jobs], retention: "workqueue", storage: "file" },
    ...{ discard: "new", max_msgs: maxJobs, max_age: LONGEST_MS * NANOS },
    description: "Jobs of troodon that are to be done",
  });
  return created;
}

/** How long a taken ticket may lie without a sign, and how often it is given out. */
export interface TakingOptions {
  readonly ackWaitMs: number;
  readonly maxDeliver: number;
}

/** Makes the consumer of a model, which its workers share. */
export async function ensureModelConsumer(
  manager: JetStreamManager,
  model: string,
  options: TakingOptions,
): Promise<void> {
  await manager.consumers.add(JOBS, {
    ...consumer(CONSUMERS.any(model), options),
    filter_subject: SUBJECTS.any(model),
  });
}

/** Makes the consumer of a worker, which is forgotten when it has been silent for a while. */
export async function ensureOwnConsumer(
  manager: JetStreamManager,
  worker: string,
  options: TakingOptions,
): Promise<void> {
  await manager.consumers.add(JOBS, {
    ...consumer(CONSUMERS.own(worker), options),
    filter_subject: SUBJECTS.own(worker),
    inactive_threshold: FORGOTTEN_MS * NANOS,
  });
}

function consumer(
  name: string,
  { ackWaitMs, maxDeliver }: TakingOptions,
): Partial<ConsumerConfig> {
  return {
    ...{ durable_name: name, ack_policy: "explicit", deliver_policy: "all" },
    ...{ ack_wait: ackWaitMs * NANOS, max_deliver: maxDeliver, max_ack_pending: -1 },
  };
}

/** Tickets that nobody has taken, and those that somebody has. */
export async function queueDepth(
  manager: JetStreamManager,
): Promise<{ readonly waiting: number; readonly taken: number }> {
  const { state: { messages } } = await manager.streams.info(JOBS);
  let taken = 0;
  for await (const { num_ack_pending } of manager.consumers.list(JOBS)) taken += num_ack_pending;
  return { waiting: Math.max(0, messages - taken), taken };
}
