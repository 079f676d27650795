// Mutated inputs as a function of (seed, index): the same pair gives the same bytes in every process, so
// a failure is two numbers. Mutations are those that break parsers: numbers at the edges of their width,
// cuts, repeats, and pieces of one good input inside another.

import { createDraw, type Draw } from "../support/draw.ts";

const INTERESTING: readonly bigint[] = [
  0n,
  1n,
  2n,
  7n,
  255n,
  256n,
  65_535n,
  0x7fff_ffffn,
  0x8000_0000n,
  0xffff_ffffn,
  0x1_0000_0000n,
  (1n << 53n) - 1n,
  1n << 53n,
  1n << 62n,
  (1n << 63n) - 1n,
  1n << 63n,
  (1n << 64n) - 1n,
];

type Mutation = (
  bytes: Uint8Array<ArrayBuffer>,
  draw: Draw,
  context: Context,
) => Uint8Array<ArrayBuffer>;

interface Context {
  readonly seeds: readonly Uint8Array[];
  readonly words: readonly Uint8Array[];
}

function concat(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const flipBit: Mutation = (bytes, draw) => {
  if (bytes.length > 0) bytes[draw(bytes.length)]! ^= 1 << draw(8);
  return bytes;
};

const setByte: Mutation = (bytes, draw) => {
  if (bytes.length > 0) bytes[draw(bytes.length)] = draw(256);
  return bytes;
};

const setNumber: Mutation = (bytes, draw) => {
  const width = [1, 2, 4, 8][draw(4)]!;
  if (bytes.length < width) return bytes;
  const at = draw(bytes.length - width + 1);
  let value = INTERESTING[draw(INTERESTING.length)]!;
  for (let i = 0; i < width; i++, value >>= 8n) bytes[at + i] = Number(value & 255n);
  return bytes;
};

const nudge: Mutation = (bytes, draw) => {
  if (bytes.length > 0) bytes[draw(bytes.length)]! += draw(2) === 0 ? 1 : 255;
  return bytes;
};

const cut: Mutation = (bytes, draw) => bytes.slice(0, draw(bytes.length + 1));

const remove: Mutation = (bytes, draw) => {
  const from = draw(bytes.length + 1);
  return concat(bytes.subarray(0, from), bytes.subarray(from + 1 + draw(16)));
};

const repeat: Mutation = (bytes, draw) => {
  const from = draw(bytes.length + 1);
  const piece = bytes.subarray(from, from + 1 + draw(64));
  const copies = Array.from({ length: 1 + draw(32) }, () => piece);
  return concat(bytes.subarray(0, from), ...copies, bytes.subarray(from));
};

const insertWord: Mutation = (bytes, draw, { words }) => {
  const at = draw(bytes.length + 1);
  const word = words.length > 0 && draw(4) > 0
    ? words[draw(words.length)]!
    : Uint8Array.from({ length: 1 + draw(8) }, () => draw(256));
  return concat(bytes.subarray(0, at), word, bytes.subarray(at));
};

const cross: Mutation = (bytes, draw, { seeds }) => {
  const other = seeds[draw(seeds.length)]!;
  return concat(bytes.subarray(0, draw(bytes.length + 1)), other.subarray(draw(other.length + 1)));
};

const MUTATIONS: readonly Mutation[] = [
  flipBit,
  setByte,
  setNumber,
  setNumber,
  nudge,
  cut,
  remove,
  repeat,
  insertWord,
  insertWord,
  cross,
];

const MAX_LENGTH = 1 << 20;

/** Input number `index` of a seed: a good input with 1 to 8 mutations. */
export function mutate(
  seeds: readonly Uint8Array[],
  words: readonly string[],
  seed: number,
  index: number,
): Uint8Array<ArrayBuffer> {
  const draw = createDraw(seed, index);
  const encoder = new TextEncoder();
  const context = { seeds, words: words.map((word) => encoder.encode(word)) };
  let bytes = new Uint8Array(seeds[draw(seeds.length)]!);
  for (let count = 1 + draw(8); count > 0; count--) {
    bytes = MUTATIONS[draw(MUTATIONS.length)]!(bytes, draw, context).slice(0, MAX_LENGTH);
  }
  return bytes;
}
