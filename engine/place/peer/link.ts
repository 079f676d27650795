// A device in another process, as its coordinator sees it. When the process is gone, what waits for it fails (line.ts); the
// link can then put another one in its place, which loads the same parts and has no rows.

import { DeviceError } from "../../errors.ts";
import type { PageMemory, PreparedPlan } from "../../run/backend.ts";
import { pageGroups } from "../../run/pages/groups.ts";
import type { PlannedPart } from "../../run/parts/cut.ts";
import { createSlotPool } from "../../run/slots.ts";
import type { CutModel, Peer, PeerPart, PeerRequest } from "../placed_device.ts";
import type { Connection, Message } from "./channel.ts";
import { cutDigest } from "./cut_digest.ts";
import { type Asked, type Line, openLine } from "./line.ts";
import { createPartLane, type PartLane } from "./part_lane.ts";

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
    { part, options, lanes }: PeerPart,
  ): Promise<PreparedPlan> {
    const { slots, pages, ranked } = options;
    this.#open++;
    const linked: LinkedPart = {
      request: { do: "prepare", part, slots, pages, ranked },
      slots: new Set(),
    };
    const facts = await this.#ask(linked.request, {
      take: ({ header }) => header as unknown as Pick<PreparedPlan, "memory" | "notes" | "threads">,
    });
    this.#parts.push(linked);
    const patience = this.#options.patience ?? PATIENCE_MS;
    const [first, ...others] = Array.from({ length: lanes }, (_, lane) =>
      createPartLane(plan, {
        isRanked: ranked !== undefined,
        run: (header, asked) => this.#run({ do: "run", part, ...header }, { ...asked, patience }),
        free: () => lane === 0 && this.#release(),
      })) as [PartLane, ...PartLane[]];
    const pool = createSlotPool(slots);
    return {
      ...facts,
      plan,
      runsAside: true,
      ...pages && {
        pages: pageGroups(plan.graph).map((_, group): PageMemory => ({
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
      ...first,
      ...others.length > 0 && { lanes: [first, ...others] },
      dispose() {
        for (const lane of others) lane.dispose();
        first.dispose();
      },
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
