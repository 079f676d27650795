// A device in another process, as its coordinator sees it. Requests go out in order and are answered in order. When the
// connection ends, or no answer comes in time, all that waits fails with a DeviceError, and so does all that follows.

import { DeviceError, ResourceError, UnsupportedError } from "../../errors.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import { compile, product } from "../../graph/dim/mod.ts";
import type { HostData, Value } from "../../graph/graph.ts";
import { hostArray } from "../../ops/host_tensor.ts";
import { maximumOf } from "../../plan/sizes.ts";
import type {
  BestLogits,
  PageMemory,
  PreparedPlan,
  PrepareOptions,
  RankedWish,
} from "../../run/backend.ts";
import { pageGroups } from "../../run/pages/groups.ts";
import type { PlannedPart } from "../../run/parts/cut.ts";
import { createPlanUse } from "../../run/plan_use.ts";
import { createSlotPool } from "../../run/slots.ts";
import type { CutModel, Peer, PeerRequest } from "../placed_device.ts";
import { Channel, type Connection, type Message, shakeHands } from "./channel.ts";
import { cutDigest } from "./cut_digest.ts";

/** What a link is made of. */
export interface LinkOptions {
  readonly name: string;
  readonly key: string;
  /** Options of load() on which the model's plan depends; what of them is no data is left out. */
  readonly load: Readonly<Record<string, unknown>>;
  /** Milliseconds in which a step is answered. */
  readonly patience?: number | undefined;
  /** Called when the link is not used any more. */
  readonly close?: () => void;
}

const PATIENCE_MS = 120_000;

interface Waiting {
  take(message: Message): void;
  fail(error: DeviceError): void;
}

/** Connects a device. @throws {DeviceError} If the other side is no peer of this version and key. */
export async function linkPeer(connection: Connection, options: LinkOptions): Promise<Peer> {
  const channel = new Channel(connection);
  try {
    await shakeHands(channel, {
      key: options.key,
      role: "coordinator",
      peer: `peer ${options.name}`,
    });
  } catch (error) {
    channel.close();
    options.close?.();
    throw error;
  }
  return new PeerLink(channel, options);
}

class PeerLink implements Peer {
  readonly #channel: Channel;
  readonly #options: LinkOptions;
  readonly #waiting: Waiting[] = [];
  #failure: DeviceError | undefined;
  #open = 0;
  #isClosed = false;

  constructor(channel: Channel, options: LinkOptions) {
    this.#channel = channel;
    this.#options = options;
    void this.#listen();
  }

  async begin({ cut, model, ...request }: PeerRequest & { readonly cut: CutModel }): Promise<void> {
    const digest = await cutDigest(cut);
    const { load } = this.#options;
    await this.#ask({ do: "begin", ...request, model, load, digest });
  }

  async prepare(
    { plan }: PlannedPart<number>,
    { part, options }: { readonly part: number; readonly options: PrepareOptions },
  ): Promise<PreparedPlan> {
    const { slots, pages, ranked } = options, found: BestLogits[] = [];
    const rowsOf = ranked && compile(plan.graph.outputs[0]!.shape[0]!);
    this.#open++;
    const facts = await this.#ask({ do: "prepare", part, slots, pages, ranked }, {
      take: ({ header }) => header as unknown as Pick<PreparedPlan, "memory" | "notes" | "threads">,
    });
    const { graph, limits } = plan;
    const hold = (value: Value) =>
      hostArray(value.dtype, { count: maximumOf(product(value.shape), limits) });
    const data = new Map(
      [...graph.inputs, ...graph.outputs].map((value) => [value.id, hold(value)]),
    );
    const dataOf = ({ id }: Value) => data.get(id)!;
    const use = createPlanUse(plan, { input: dataOf, output: dataOf, free: () => this.#release() });
    const inputs = graph.inputs.map((value) => bytesOf(value, dataOf(value)));
    const outputs = graph.outputs.map((value) => bytesOf(value, dataOf(value)));
    const pool = createSlotPool(slots);
    return {
      ...facts,
      plan,
      runsAside: true,
      ...pages && {
        pages: pageGroups(graph).map((_, group): PageMemory => ({
          map: (at, page) => this.#tell({ do: "map", part, group, ...at, page }),
          copy: (from, to) => this.#tell({ do: "copy", part, group, ...from, to }),
        })),
      },
      openSlot: () => {
        if (this.#failure) throw this.#failure;
        const slot = pool.open();
        this.#tell({ do: "open", part });
        return slot;
      },
      closeSlot: (slot) => {
        pool.close(slot);
        this.#tell({ do: "close", part, slot });
      },
      readState: (slot, count) =>
        this.#ask({ do: "read", part, slot, count }, { take: ({ bytes }) => bytes.slice() }),
      writeState: async (slot, count, bytes) => {
        await this.#ask({ do: "write", part, slot, count }, { bytes: [bytes] });
      },
      input: use.input,
      output: use.output,
      best: (row) => found[row],
      isGone: (row) => found[row] !== undefined,
      run: (bindings, wish) => {
        use.checkRun(bindings);
        found.length = 0;
        const best = ranked && wish && bestOf(wish, rowsOf!(bindings));
        return this.#ask({ do: "run", part, bindings, best }, {
          bytes: inputs.map((take) => take(bindings)),
          patience: this.#options.patience ?? PATIENCE_MS,
          take: ({ header, bytes }) => {
            if (header.found) return void found.push(...foundOf(header.found as FoundRow[]));
            let at = 0;
            for (const output of outputs) {
              const own = output(bindings);
              own.set(bytes.subarray(at, at += own.length));
            }
          },
        });
      },
      dispose: use.dispose,
    };
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#failure ??= this.#gone("closed");
    this.#channel.close();
    this.#options.close?.();
  }

  #release(): void {
    if (--this.#open === 0) this.close();
  }

  #tell(header: Message["header"]): void {
    // What is given back needs no peer; the next run says that it is gone.
    if (this.#failure) return;
    this.#channel.send(header).catch((error) => this.#fail(this.#gone((error as Error).message)));
  }

  #ask<T = void>(
    header: Message["header"],
    { bytes = [], take = () => undefined as T, patience }: {
      readonly bytes?: readonly Uint8Array[];
      readonly take?: (message: Message) => T;
      readonly patience?: number;
    } = {},
  ): Promise<T> {
    if (this.#failure) return Promise.reject(this.#failure);
    return new Promise<T>((resolve, reject) => {
      const timer = patience === undefined ? undefined : setTimeout(
        () => this.#fail(this.#gone(`no answer within ${patience} ms`)),
        patience,
      );
      this.#waiting.push({
        take: (message) => {
          clearTimeout(timer);
          const error = errorOf(message, this.#options.name);
          if (error) reject(error);
          else resolve(take(message));
        },
        fail: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      });
      this.#channel.send(header, bytes)
        .catch((error) => this.#fail(this.#gone((error as Error).message)));
    });
  }

  async #listen(): Promise<void> {
    try {
      for (let message; (message = await this.#channel.receive());) {
        this.#waiting.shift()?.take(message);
      }
      this.#fail(this.#gone("it ended"));
    } catch (error) {
      this.#fail(this.#gone((error as Error).message));
    }
  }

  #gone(why: string): DeviceError {
    return new DeviceError(`peer ${this.#options.name} is gone (${why})`, {
      remedy: "Load the model again, without it or when it is back",
    });
  }

  #fail(error: DeviceError): void {
    this.#failure ??= error;
    for (const one of this.#waiting.splice(0)) one.fail(this.#failure);
    this.close();
  }
}

/** The bytes of a value in a run, in the memory of the link. */
function bytesOf({ shape }: Value, data: HostData): (bindings: DimEnv) => Uint8Array {
  const count = compile(product(shape)), { buffer, byteOffset, BYTES_PER_ELEMENT } = data;
  return (bindings) => new Uint8Array(buffer, byteOffset, count(bindings) * BYTES_PER_ELEMENT);
}

/** The best values of a row, as a peer writes them. */
export type FoundRow = readonly (readonly [id: number, logit: number])[];

/** How many are wanted of each row; undefined if one is wanted whole. */
function bestOf({ best }: RankedWish, rows: number): readonly number[] | undefined {
  const wanted = [...best.subarray(0, rows)];
  return wanted.every((count) => count > 0) ? wanted : undefined;
}

function foundOf(rows: readonly FoundRow[]): BestLogits[] {
  return rows.map((row) => ({
    ids: Uint32Array.from(row, ([id]) => id),
    // What JSON has no number for.
    logits: Float32Array.from(row, ([, logit]) => logit ?? NaN),
    count: row.length,
  }));
}

/** Errors that peers tell by name. */
const ERRORS = { DeviceError, ResourceError, UnsupportedError, RangeError, TypeError } as const;

function errorOf({ header: { error } }: Message, name: string): Error | undefined {
  if (!error) return undefined;
  const { kind, message } = error as { readonly kind: string; readonly message: string };
  const make = Object.hasOwn(ERRORS, kind) ? ERRORS[kind as keyof typeof ERRORS] : DeviceError;
  return new make(`peer ${name}: ${message}`);
}
