// The other side of link.ts: a process that computes parts of a model for a coordinator. It builds and cuts the model itself,
// by the same rules; the digest of the cut must be the coordinator's, or it says that it has another model.

import { DeviceError } from "../../errors.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import type { Plan } from "../../plan/plan.ts";
import type { PassContext } from "../../plan/passes/pass.ts";
import type { BestLogits, PreparedPlan, RankedOutput } from "../../run/backend.ts";
import type { Device } from "../../run/devices.ts";
import { cutByRules, type CutModel, forDevice, type PeerRequest } from "../placed_device.ts";
import { Channel, type Connection, type Message, shakeHands } from "./channel.ts";
import { cutDigest } from "./cut_digest.ts";
import { type FoundRow, rangeOf } from "./part_lane.ts";

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
  readonly parts: Map<number, ServedPart>;
  /** Whether something that was asked for is not answered yet. */
  isAtWork: boolean;
}

/** A part that is ready, with the ranges of its inputs and outputs in a run. */
interface ServedPart {
  readonly prepared: PreparedPlan;
  readonly inputs: readonly NamedRange[];
  readonly outputs: readonly NamedRange[];
}

interface NamedRange {
  readonly name: string;
  readonly range: ReturnType<typeof rangeOf>;
}

const namedRange = (value: Value): NamedRange => ({ name: value.name, range: rangeOf(value) });

/** So often a peer says that it is at work. */
const AT_WORK_MS = 10_000;

/** Computes for one coordinator until it goes. @throws {DeviceError} If it is none of this version and key. */
export async function servePeer(connection: Connection, options: PeerOptions): Promise<void> {
  const channel = new Channel(connection);
  const session: Session = { parts: new Map(), isAtWork: false };
  const atWork = setInterval(() => {
    if (session.isAtWork) send(channel, { header: { isAtWork: true } });
  }, AT_WORK_MS);
  try {
    await shakeHands(channel, { key: options.key, role: "peer", peer: "the coordinator" });
    for (let message; (message = await channel.receive());) {
      await answer(channel, { message, session, options });
    }
  } finally {
    clearInterval(atWork);
    for (const { prepared } of session.parts.values()) prepared.dispose();
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
  if (told) return told(partOf(call).prepared, header as never);
  call.session.isAtWork = true;
  try {
    const asked = ASKED[header.do as string];
    if (!asked) throw new DeviceError(`there is no request ${JSON.stringify(header.do)}`);
    send(channel, await asked(call) ?? {});
  } catch (error) {
    const { name, message } = error as Error;
    send(channel, { header: { error: { kind: name, message } } });
  }
  call.session.isAtWork = false;
}

/** Does not wait, so that what comes next is begun; a connection that has ended is found by who reads it. */
function send(channel: Channel, { header = {}, bytes }: Answer): void {
  channel.send(header, bytes).catch(() => {});
}

interface Answer {
  readonly header?: Message["header"];
  readonly bytes?: readonly Uint8Array[];
}

function partOf({ session, message: { header } }: Call): ServedPart {
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
    session.parts.set(part, {
      prepared,
      inputs: plan.graph.inputs.map(namedRange),
      outputs: plan.graph.outputs.map(namedRange),
    });
    const { memory, notes, threads } = prepared;
    return { header: { memory, notes, threads } };
  },
  async run(call) {
    const { bindings, best } = call.message.header as { bindings: DimEnv; best?: number[] };
    const { prepared, inputs, outputs } = partOf(call);
    let at = 0;
    for (const { name, range } of inputs) {
      const own = range(prepared.input(name), bindings);
      own.set(call.message.bytes.subarray(at, at += own.length));
    }
    const rows = best && Int32Array.from(best);
    await prepared.run(bindings, rows && { best: rows, repeats: 0 });
    const found = best?.map((_, row) => prepared.best?.(row));
    if (found?.every((one) => one !== undefined)) return { header: { found: found.map(pairsOf) } };
    return { bytes: outputs.map(({ name, range }) => range(prepared.output(name), bindings)) };
  },
  async read(call) {
    const { slot, count } = call.message.header as Record<"slot" | "count", number>;
    return { bytes: [await partOf(call).prepared.readState(slot, count)] };
  },
  async write(call) {
    const { slot, count } = call.message.header as Record<"slot" | "count", number>;
    await partOf(call).prepared.writeState(slot, count, call.message.bytes);
  },
};

function pairsOf({ ids, logits, count }: BestLogits): FoundRow {
  return Array.from({ length: count }, (_, i) => [ids[i]!, logits[i]!]);
}
