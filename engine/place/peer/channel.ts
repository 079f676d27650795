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

const ENCODER = new TextEncoder(), DECODER = new TextDecoder();
/** Bytes that are asked for at once at least, and the longest frame that is kept for the next message. */
const LEAST_ROOM = 2 ** 16, MOST_KEPT = 2 ** 22;

/**
 * Both directions of a connection, message by message. Short messages cost one read and one write each: what comes behind
 * one is kept, and the memory of both is there from message to message.
 */
export class Channel {
  readonly #connection: Connection;
  /** What has come, and the range of it that is not taken yet. */
  #input = new Uint8Array(LEAST_ROOM);
  #from = 0;
  #to = 0;
  #frame = new Uint8Array(LEAST_ROOM);
  #sending: Promise<void> = Promise.resolve();
  #unsent = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Sends behind what was sent before; rejects if the connection is gone. All of it is copied at once. */
  send(header: Message["header"], pieces: readonly Uint8Array[] = []): Promise<void> {
    const text = ENCODER.encode(JSON.stringify(header));
    const count = pieces.reduce((sum, { length }) => sum + length, 0);
    const frame = this.#frameOf(8 + text.length + count);
    const view = new DataView(frame.buffer);
    view.setUint32(0, text.length, true);
    view.setUint32(4, count, true);
    frame.set(text, 8);
    let at = 8 + text.length;
    for (const piece of pieces) {
      frame.set(piece, at);
      at += piece.length;
    }
    const isFirst = this.#unsent++ === 0;
    const sent = isFirst ? this.#write(frame) : this.#sending.then(() => this.#write(frame));
    return this.#sending = sent.finally(() => this.#unsent--);
  }

  /** Memory for a message: that of the one before, if it has gone. */
  #frameOf(length: number): Uint8Array {
    if (this.#unsent > 0 || length > MOST_KEPT) return new Uint8Array(length);
    if (this.#frame.length < length) this.#frame = new Uint8Array(length);
    return this.#frame.subarray(0, length);
  }

  async #write(frame: Uint8Array): Promise<void> {
    for (let at = 0; at < frame.length;) at += await this.#connection.write(frame.subarray(at));
  }

  /** @throws {DeviceError} If the connection ends within a message, or what comes is none. */
  async receive(): Promise<Message | undefined> {
    if (!await this.#fill(8)) return undefined;
    const view = new DataView(this.#input.buffer, this.#from);
    const header = view.getUint32(0, true), count = view.getUint32(4, true);
    if (header > MOST_HEADER || count > MOST_BYTES) {
      throw new DeviceError("a peer sent what is no message");
    }
    await this.#fill(8 + header + count);
    const start = this.#from + 8, end = start + header + count;
    this.#from = end;
    return {
      header: JSON.parse(DECODER.decode(this.#input.subarray(start, start + header))),
      bytes: this.#input.subarray(start + header, end),
    };
  }

  /** Waits until so many bytes are there; false if the connection ended before the first. */
  async #fill(count: number): Promise<boolean> {
    this.#makeRoom(count);
    while (this.#to - this.#from < count) {
      const read = await this.#connection.read(this.#input.subarray(this.#to));
      if (read === null) {
        if (this.#to === this.#from) return false;
        throw new DeviceError("a peer ended within a message");
      }
      this.#to += read;
    }
    return true;
  }

  /** Moves what is there to the front, into more memory if that is too little. */
  #makeRoom(count: number): void {
    const kept = this.#input.subarray(this.#from, this.#to);
    if (kept.length < count) {
      if (this.#input.length < count) this.#input = new Uint8Array(Math.max(count, LEAST_ROOM));
      this.#input.set(kept);
      [this.#from, this.#to] = [0, kept.length];
    }
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
