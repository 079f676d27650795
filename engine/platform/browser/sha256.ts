// SHA-256 (FIPS 180-4) of bytes that come piece by piece: the browser's own digest wants them all at once.

const PRIMES = ((): number[] => {
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
  return primes;
})();
const fraction = (x: number): number => Math.floor((x - Math.floor(x)) * 2 ** 32);
const K = Int32Array.from(PRIMES, (p) => fraction(Math.cbrt(p)));
const START = PRIMES.slice(0, 8).map((p) => fraction(Math.sqrt(p)));

const turn = (x: number, by: number): number => x >>> by | x << 32 - by;

/** A sum under way. */
export class Sha256 {
  readonly #state: Int32Array = Int32Array.from(START);
  readonly #schedule: Int32Array = new Int32Array(64);
  readonly #rest: Uint8Array = new Uint8Array(64);
  #length = 0;

  /** Adds bytes. */
  update(bytes: Uint8Array): this {
    const filled = this.#length % 64;
    this.#length += bytes.length;
    let at = 0;
    if (filled > 0) {
      at = Math.min(64 - filled, bytes.length);
      this.#rest.set(bytes.subarray(0, at), filled);
      if (filled + at < 64) return this;
      this.#block(this.#rest, 0);
    }
    for (; at + 64 <= bytes.length; at += 64) this.#block(bytes, at);
    this.#rest.set(bytes.subarray(at));
    return this;
  }

  /** The sum in hexadecimal; nothing may be added any more. */
  digest(): string {
    const bits = this.#length * 8, filled = this.#length % 64;
    const tail = new Uint8Array((filled < 56 ? 64 : 128) - filled);
    tail[0] = 0x80;
    const view = new DataView(tail.buffer);
    view.setUint32(tail.length - 8, Math.floor(bits / 2 ** 32));
    view.setUint32(tail.length - 4, bits >>> 0);
    this.update(tail);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #block(bytes: Uint8Array, from: number): void {
    const w = this.#schedule, state = this.#state;
    for (let i = 0, at = from; i < 16; i++, at += 4) {
      w[i] = bytes[at]! << 24 | bytes[at + 1]! << 16 | bytes[at + 2]! << 8 | bytes[at + 3]!;
    }
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15]!, y = w[i - 2]!;
      w[i] = w[i - 16]! + (turn(x, 7) ^ turn(x, 18) ^ x >>> 3) + w[i - 7]! +
        (turn(y, 17) ^ turn(y, 19) ^ y >>> 10);
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as [
      ...[number, number, number, number, number, number, number, number],
    ];
    for (let i = 0; i < 64; i++) {
      const one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (e & f ^ ~e & g) + K[i]! + w[i]! |
        0;
      const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + (a & b ^ a & c ^ b & c) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, d + one | 0, c, b, a, one + two | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => state[i] = state[i]! + word);
  }
}
