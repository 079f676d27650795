// The line to a peer: requests go out in order and are answered in order. When the connection ends, or no answer comes in
// time, all that waits fails with a DeviceError, and so does all that follows on this line.

import { DeviceError, ResourceError, UnsupportedError } from "../../errors.ts";
import { Channel, type Connection, type Message, shakeHands } from "./channel.ts";

/** What goes with a request, and what is made of its answer. */
export interface Asked<T> {
  readonly bytes?: readonly Uint8Array[];
  readonly take?: (message: Message) => T;
  /** Milliseconds in which it is answered; default: as long as the peer says that it is at work. */
  readonly patience?: number;
}

interface Waiting {
  take(message: Message): void;
  fail(error: DeviceError): void;
  /** The peer says that it is at work. */
  hear(): void;
}

/** A peer that is at work says so now and then (serve.ts); it is gone when nothing was heard for so many milliseconds. */
const SILENCE_MS = 120_000;

/** Connects. @throws {DeviceError} If the other side is no peer of this version and key. */
export async function openLine(
  { name, key, connect }: {
    readonly name: string;
    readonly key: string;
    readonly connect: () => Promise<Connection>;
  },
): Promise<Line> {
  const channel = new Channel(await connect());
  await shakeHands(channel, { key, role: "coordinator", peer: `peer ${name}` });
  return new Line(channel, name);
}

/** A connection whose other side has proved that it is a peer. */
export class Line {
  /** Why nothing goes over it any more. */
  failure: DeviceError | undefined;
  readonly #channel: Channel;
  readonly #name: string;
  readonly #waiting: Waiting[] = [];

  constructor(channel: Channel, name: string) {
    this.#channel = channel;
    this.#name = name;
    void this.#listen();
  }

  /** Sends what has no answer; what is given back needs no peer, and the next request says that it is gone. */
  tell(header: Message["header"]): void {
    if (this.failure) return;
    this.#channel.send(header).catch((error) => this.#fail((error as Error).message));
  }

  /** Rejects with what the peer says, and with a DeviceError if it is gone. */
  ask<T>(
    header: Message["header"],
    { bytes = [], take = () => undefined as T, patience }: Asked<T>,
  ): Promise<T> {
    if (this.failure) return Promise.reject(this.failure);
    return new Promise<T>((resolve, reject) => {
      const wait = patience ?? SILENCE_MS;
      const start = () => setTimeout(() => this.#fail(`no answer within ${wait} ms`), wait);
      let timer = start();
      this.#waiting.push({
        take: (message) => {
          clearTimeout(timer);
          const error = errorOf(message, this.#name);
          if (error) reject(error);
          else resolve(take(message));
        },
        fail: (error) => {
          clearTimeout(timer);
          reject(error);
        },
        hear() {
          if (patience !== undefined) return;
          clearTimeout(timer);
          timer = start();
        },
      });
      this.#channel.send(header, bytes).catch((error) => this.#fail((error as Error).message));
    });
  }

  close(): void {
    this.#fail("closed");
  }

  async #listen(): Promise<void> {
    try {
      for (let message; (message = await this.#channel.receive());) {
        // Those behind the first wait for it, too.
        if (message.header.isAtWork) { for (const one of this.#waiting) one.hear(); }
        else this.#waiting.shift()?.take(message);
      }
      this.#fail("it ended");
    } catch (error) {
      this.#fail((error as Error).message);
    }
  }

  #fail(why: string): void {
    if (this.failure) return;
    this.failure = new DeviceError(`peer ${this.#name} is gone (${why})`, {
      remedy: "Load the model again, without it or when it is back",
    });
    for (const one of this.#waiting.splice(0)) one.fail(this.failure);
    this.#channel.close();
  }
}

/** Errors that peers tell by name. */
const ERRORS = { DeviceError, ResourceError, UnsupportedError, RangeError, TypeError } as const;

function errorOf({ header: { error } }: Message, name: string): Error | undefined {
  if (!error) return undefined;
  const { kind, message } = error as { readonly kind: string; readonly message: string };
  const make = Object.hasOwn(ERRORS, kind) ? ERRORS[kind as keyof typeof ERRORS] : DeviceError;
  return new make(`peer ${name}: ${message}`);
}
