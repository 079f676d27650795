// A device in another process, as its coordinator sees it. When the process is gone, what waits for it fails (line.ts); the
// link can then put another one in its place, which loads the same parts and has no rows.

import { DeviceError } from "../../errors.ts";
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
import type { Connection, Message } from "./channel.ts";
import { cutDigest } from "./cut_digest.ts";
import { type Asked, type Line, openLine } from "./line.ts";

/** What a link is made of. */
export interface LinkOptions {
  readonly name: string;
  readonly key: string;
  /** Connects, again where the one before is gone. */
  readonly connect: () => Promise<Connection>;
  /** Options of load() on which the model's plan depends; what of them is no data is left out. */
  readonly load: Readonly<Record<string, unknown>>;
  /** Milliseconds in which a step is answered. */
  readonly patience?: number | undefined;
}

const PATIENCE_MS = 120_000;

/** Connects a device. @throws {DeviceError} If the other side is no peer of this version and key. */
export async function linkPeer(options: LinkOptions): Promise<Peer> {
  return new PeerLink(await openLine(options), options);
}

/** A part that a peer has loaded: what it was asked for, and the slots that are open. */
interface LinkedPart {
  readonly request: Message["header"];
  readonly slots: Set<number>;
}

class PeerLink implements Peer {
  #line: Line;
  readonly #options: LinkOptions;
  #begun: Message["header"] = {};
  readonly #parts: LinkedPart[] = [];
  #open = 0;
  #isClosed = false;

  constructor(line: Line, options: LinkOptions) {
    this.#line = line;
    this.#options = options;
  }

  get isGone(): boolean {
    return this.#line.failure !== undefined;
  }

  async begin({ cut, ...request }: PeerRequest & { readonly cut: CutModel }): Promise<void> {
    const digest = await cutDigest(cut);
    const { load } = this.#options;
    this.#begun = { do: "begin", ...request, load, digest };
    await this.#ask(this.#begun);
  }

  async replace(): Promise<void> {
    if (this.#isClosed) throw this.#line.failure!;
    this.#line.close();
    this.#line = await openLine(this.#options);
    try {
      await this.#ask(this.#begun);
      for (const { request, slots } of this.#parts) {
        await this.#ask(request);
        // A pool gives the lowest free slot, so those between are opened and closed.
        const { part } = request, count = Math.max(0, ...slots.values().map((slot) => slot + 1));
        for (let slot = 0; slot < count; slot++) this.#tell({ do: "open", part });
        for (let slot = 0; slot < count; slot++) {
          if (!slots.has(slot)) this.#tell({ do: "close", part, slot });
        }
      }
    } catch (error) {
      this.#line.close();
      throw error;
    }
  }

  async prepare(
    { plan }: PlannedPart<number>,
    { part, options }: { readonly part: number; readonly options: PrepareOptions },
  ): Promise<PreparedPlan> {
    const { slots, pages, ranked } = options, found: BestLogits[] = [];
    const rowsOf = ranked && compile(plan.graph.outputs[0]!.shape[0]!);
    this.#open++;
    const linked: LinkedPart = {
      request: { do: "prepare", part, slots, pages, ranked },
      slots: new Set(),
    };
    const facts = await this.#ask(linked.request, {
      take: ({ header }) => header as unknown as Pick<PreparedPlan, "memory" | "notes" | "threads">,
    });
    this.#parts.push(linked);
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
        const slot = pool.open();
        linked.slots.add(slot);
        this.#tell({ do: "open", part });
        return slot;
      },
      closeSlot: (slot) => {
        pool.close(slot);
        linked.slots.delete(slot);
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
        return this.#run({ do: "run", part, bindings, best }, {
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
    this.#isClosed = true;
    this.#line.close();
  }

  #release(): void {
    if (--this.#open === 0) this.close();
  }

  #tell(header: Message["header"]): void {
    this.#line.tell(header);
  }

  /** Whose device has failed is gone, too: another process has another one. */
  async #run(header: Message["header"], asked: Asked<void>): Promise<void> {
    const line = this.#line;
    try {
      await line.ask(header, asked);
    } catch (error) {
      if (error instanceof DeviceError) line.close();
      throw error;
    }
  }

  #ask<T = void>(header: Message["header"], asked: Asked<T> = {}): Promise<T> {
    return this.#line.ask(header, asked);
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
