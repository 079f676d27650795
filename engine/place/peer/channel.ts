// Messages between the processes of a placement: a header in JSON and bytes, each behind their lengths. Both sides prove that
// they know the key before anything else is said; what follows is not encrypted.

import { DeviceError } from "../../errors.ts";

/** What messages are in; a peer that speaks another one is refused. */
export const PROTOCOL = 1;

/** A stream of bytes both ways. */
export interface Connection {
  read(target: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  close(): void;
}

/** A message. The bytes are valid until the next one is received. */
export interface Message {
  readonly header: Readonly<Record<string, unknown>>;
  readonly bytes: Uint8Array;
}

/** Longest header, and longest message: more is no message of ours. */
const MOST_HEADER = 2 ** 26;
const MOST_BYTES = 2 ** 31;

/** Both directions of a connection, message by message. */
export class Channel {
  readonly #connection: Connection;
  readonly #lengths = new Uint8Array(8);
  #buffer = new Uint8Array(2 ** 16);
  #sending: Promise<void> = Promise.resolve();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Sends behind what was sent before; rejects if the connection is gone. */
  send(header: Message["header"], pieces: readonly Uint8Array[] = []): Promise<void> {
    const text = new TextEncoder().encode(JSON.stringify(header));
    const count = pieces.reduce((sum, { length }) => sum + length, 0);
    const frame = new Uint8Array(8 + text.length + count);
    const view = new DataView(frame.buffer);
    view.setUint32(0, text.length, true);
    view.setUint32(4, count, true);
    frame.set(text, 8);
    let at = 8 + text.length;
    for (const piece of pieces) {
      frame.set(piece, at);
      at += piece.length;
    }
    return this.#sending = this.#sending.then(() => this.#write(frame));
  }

  async #write(frame: Uint8Array): Promise<void> {
    for (let at = 0; at < frame.length;) at += await this.#connection.write(frame.subarray(at));
  }

  /** @throws {DeviceError} If the connection ends within a message, or what comes is none. */
  async receive(): Promise<Message | undefined> {
    if (!await this.#fill(this.#lengths)) return undefined;
    const view = new DataView(this.#lengths.buffer);
    const header = view.getUint32(0, true), count = view.getUint32(4, true);
    if (header > MOST_HEADER || count > MOST_BYTES) {
      throw new DeviceError("a peer sent what is no message");
    }
    if (this.#buffer.length < header + count) this.#buffer = new Uint8Array(header + count);
    const body = this.#buffer.subarray(0, header + count);
    if (!await this.#fill(body)) throw new DeviceError("a peer ended within a message");
    return {
      header: JSON.parse(new TextDecoder().decode(body.subarray(0, header))),
      bytes: body.subarray(header),
    };
  }

  /** Whether all of it came; false if nothing did. */
  async #fill(target: Uint8Array): Promise<boolean> {
    for (let at = 0; at < target.length;) {
      const count = await this.#connection.read(target.subarray(at));
      if (count === null) {
        if (at === 0) return false;
        throw new DeviceError("a peer ended within a message");
      }
      at += count;
    }
    return true;
  }

  close(): void {
    try {
      this.#connection.close();
    } catch {
      // It is closed.
    }
  }
}

/** How two sides prove to each other who they are. */
export interface Handshake {
  readonly key: string;
  readonly role: "coordinator" | "peer";
  /** The other side, for messages. */
  readonly peer: string;
  /** Milliseconds in which the other side must have proved it; default 20,000. */
  readonly patience?: number;
}

/**
 * Proves to each other that both know the key and speak the same protocol.
 *
 * @throws {DeviceError} If the other side does not, or says nothing; the channel is closed then.
 */
export async function shakeHands(
  channel: Channel,
  { patience = 20_000, ...handshake }: Handshake,
): Promise<void> {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    channel.close();
  }, patience);
  try {
    await proveKeys(channel, handshake);
  } catch (error) {
    channel.close();
    if (!isLate) throw error;
    throw new DeviceError(`${handshake.peer} says nothing within ${patience} ms`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

async function proveKeys(
  channel: Channel,
  { key, role, peer }: Omit<Handshake, "patience">,
): Promise<void> {
  const own = crypto.getRandomValues(new Uint8Array(16)).toHex();
  await channel.send({ protocol: PROTOCOL, nonce: own });
  const hello = (await channel.receive())?.header;
  if (typeof hello?.protocol !== "number" || typeof hello.nonce !== "string") {
    throw new DeviceError(`${peer} is no peer of Troodon`);
  }
  if (hello.protocol !== PROTOCOL) {
    throw new DeviceError(
      `${peer} is of another version: it speaks protocol ${hello.protocol}, this ${PROTOCOL}`,
      {
        remedy: "Use the same version of Troodon on both sides",
      },
    );
  }
  const other = role === "peer" ? "coordinator" : "peer";
  await channel.send({ proof: await proofOf(key, `${role} ${own} ${hello.nonce}`) });
  const { proof } = (await channel.receive())?.header ?? {};
  if (proof === await proofOf(key, `${other} ${hello.nonce} ${own}`)) return;
  throw new DeviceError(`${peer} has another key`, {
    remedy: "Give both sides the same TROODON_PEER_KEY",
  });
}

/** HMAC-SHA-256 of a text, in hexadecimal. */
async function proofOf(key: string, text: string): Promise<string> {
  const encode = (part: string) => new TextEncoder().encode(part);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const secret = await crypto.subtle.importKey("raw", encode(`troodon ${key}`), algorithm, false, [
    "sign",
  ]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", secret, encode(text))).toHex();
}
