// `--nats`: where the queue is that fronts and workers share.

import { QueueEngine } from "../serve/queue/queue_engine.ts";
import { natsServer } from "../serve/queue/nats_link.ts";
import { UsageError } from "./args.ts";
import { mayReach } from "./machine.ts";
import type { Terminal } from "./terminal.ts";

/**
 * The engine of a front.
 *
 * @param given What stands beside the flag.
 * @throws {UsageError} If there are models, which are the workers', or the URL is none of NATS.
 */
export function queueEngine(
  url: string,
  { models, terminal }: { readonly models: readonly string[]; readonly terminal: Terminal },
): QueueEngine {
  if (models.length > 0) {
    throw new UsageError(
      `--nats serves the models of workers: give ${models[0]} to troodon worker --nats ${
        place(url)
      }`,
    );
  }
  checkUrl(url, terminal);
  return new QueueEngine({ url, notice: (text) => terminal.err(`${text}\n`) });
}

/** @throws {UsageError} If the URL is none of NATS, or nobody is there to be asked whether it may be reached. */
export function checkUrl(url: string, { keyboard }: Pick<Terminal, "keyboard">): void {
  let server: string;
  try {
    server = natsServer(url).servers;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  // A server that is not there may come; a permission does not.
  if (keyboard || mayReach(server)) return;
  throw new UsageError(`Deno may not reach NATS at ${server}: run with --allow-net=${server}`);
}

/** The URL without its password. */
export function place(url: string): string {
  return url.replace(/^(\w+:\/\/)?.*@/, "$1");
}
