// The other side of link.ts: a process that computes parts of a model for a coordinator. It builds and cuts the model itself,
// by the same rules; the digest of the cut must be the coordinator's, or it says that it has another model.

import { DeviceError } from "../../errors.ts";
import { compile, type DimEnv, product } from "../../graph/dim/mod.ts";
import type { Plan } from "../../plan/plan.ts";
import type { PassContext } from "../../plan/passes/pass.ts";
import type { BestLogits, PreparedPlan, RankedOutput } from "../../run/backend.ts";
import type { Device } from "../../run/devices.ts";
import { cutByRules, type CutModel, forDevice, type PeerRequest } from "../placed_device.ts";
import { Channel, type Connection, type Message, shakeHands } from "./channel.ts";
import { cutDigest } from "./cut_digest.ts";
import type { FoundRow } from "./link.ts";

/** How a peer computes. */
export interface PeerOptions {
  readonly device: Device;
  readonly key: string;
  /** Plans a model that is on this machine. */
  readonly plan: (
    path: string | undefined,
    load: Readonly<Record<string, unknown>>,
  ) => Promise<{ readonly plan: Plan; close(): void }>;
}

interface Session {
  cut?: CutModel;
  request?: PeerRequest;
  file?: { close(): void };
  readonly parts: Map<number, PreparedPlan>;
}

/** So often a peer says that it is at work. */
const AT_WORK_MS = 10_000;

/** Computes for one coordinator until it goes. @throws {DeviceError} If it is none of this version and key. */
export async function servePeer(connection: Connection, options: PeerOptions): Promise<void> {
  const channel = new Channel(connection);
  const session: Session = { parts: new Map() };
  try {
    await shakeHands(channel, { key: options.key, role: "peer", peer: "the coordinator" });
    for (let message; (message = await channel.receive());) {
      await answer(channel, { message, session, options });
    }
  } finally {
    for (const part of session.parts.values()) part.dispose();
    session.file?.close();
    channel.close();
  }
}

interface Call {
  readonly message: Message;
  readonly session: Session;
  readonly options: PeerOptions;
}

/** What is asked for is answered; what is told is not, but a failure of it ends the connection. */
async function answer(channel: Channel, call: Call): Promise<void> {
  const { header } = call.message;
  const told = TOLD[header.do as string];
  if (told) return told(partOf(call), header as never);
  const atWork = setInterval(() => {
    // A connection that has ended is found by who reads it.
    channel.send({ isAtWork: true }).catch(() => {});
  }, AT_WORK_MS);
  try {
    const asked = ASKED[header.do as string];
    if (!asked) throw new DeviceError(`there is no request ${JSON.stringify(header.do)}`);
    const { header: facts = {}, bytes = [] } = await asked(call) ?? {};
    await channel.send(facts, bytes);
  } catch (error) {
    const { name, message } = error as Error;
    await channel.send({ error: { kind: name, message } });
  } finally {
    clearInterval(atWork);
  }
}

interface Answer {
  readonly header?: Message["header"];
  readonly bytes?: readonly Uint8Array[];
}

function partOf({ session, message: { header } }: Call): PreparedPlan {
  const part = session.parts.get(header.part as number);
  if (!part) throw new DeviceError(`part ${header.part} is not ready`);
  return part;
}

type Numbers = Readonly<Record<"slot" | "group" | "index" | "page" | "rows" | "to", number>>;

/** Requests without an answer. */
const TOLD: Readonly<Record<string, (part: PreparedPlan, numbers: Numbers) => void>> = {
  open: (part) => void part.openSlot(),
  close: (part, { slot }) => part.closeSlot(slot),
  map: (part, { group, slot, index, page }) => part.pages![group]!.map({ slot, index }, page),
  copy: (part, { group, page, rows, to }) => part.pages![group]!.copy({ page, rows }, to),
};

const ASKED: Readonly<Record<string, (call: Call) => Promise<Answer | void>>> = {
  async begin({ message: { header }, session, options }) {
    const { rules, device, precision, model, load, digest } = header as unknown as PeerRequest & {
      readonly load: Readonly<Record<string, unknown>>;
      readonly digest: string;
    };
    const { plan, close } = await options.plan(model, load);
    session.file = { close };
    session.cut = cutByRules(plan, { rules });
    session.request = { rules, device, precision, model };
    if (await cutDigest(session.cut) === digest) return;
    throw new DeviceError("it has another model, or cuts it otherwise, as another version does");
  },
  async prepare({ message: { header }, session, options: { device } }) {
    const { part, slots, pages, ranked } = header as {
      part: number;
      slots: number;
      pages?: number[];
      ranked?: RankedOutput;
    };
    const { plan } = session.cut!.parts[part]!;
    const precision = session.request!.precision as PassContext["precision"];
    const prepared = await device.backend.prepare(forDevice(plan, { device, precision }), {
      slots,
      ...pages && { pages },
      ...ranked && { ranked },
    });
    session.parts.set(part, prepared);
    const { memory, notes, threads } = prepared;
    return { header: { memory, notes, threads } };
  },
  async run(call) {
    const { part, bindings, best } = call.message.header as {
      part: number;
      bindings: DimEnv;
      best?: number[];
    };
    const prepared = partOf(call), { graph } = call.session.cut!.parts[part]!.plan;
    let at = 0;
    for (const { name, shape } of graph.inputs) {
      const own = bytesIn(prepared.input(name), product(shape), bindings);
      own.set(call.message.bytes.subarray(at, at += own.length));
    }
    const rows = best && Int32Array.from(best);
    await prepared.run(bindings, rows && { best: rows, repeats: 0 });
    const found = best?.map((_, row) => prepared.best?.(row));
    if (found?.every((one) => one !== undefined)) return { header: { found: found.map(pairsOf) } };
    return {
      bytes: graph.outputs.map(({ name, shape }) =>
        bytesIn(prepared.output(name), product(shape), bindings)
      ),
    };
  },
  async read(call) {
    const { slot, count } = call.message.header as Record<"slot" | "count", number>;
    return { bytes: [await partOf(call).readState(slot, count)] };
  },
  async write(call) {
    const { slot, count } = call.message.header as Record<"slot" | "count", number>;
    await partOf(call).writeState(slot, count, call.message.bytes);
  },
};

function pairsOf({ ids, logits, count }: BestLogits): FoundRow {
  return Array.from({ length: count }, (_, i) => [ids[i]!, logits[i]!]);
}

function bytesIn(
  { buffer, byteOffset, BYTES_PER_ELEMENT }: ArrayBufferView & {
    readonly BYTES_PER_ELEMENT: number;
  },
  count: Parameters<typeof compile>[0],
  bindings: DimEnv,
): Uint8Array {
  return new Uint8Array(buffer, byteOffset, compile(count)(bindings) * BYTES_PER_ELEMENT);
}
