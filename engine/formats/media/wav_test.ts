import { assertEquals, assertThrows } from "@std/assert";
import { FormatError, UnsupportedError } from "../../errors.ts";
import { readWav } from "./wav.ts";

function wav(kind: number, channels: number, bits: number, data: Uint8Array): Uint8Array {
  const view = new DataView(new ArrayBuffer(44 + data.length));
  const text = (at: number, name: string) =>
    [...name].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  text(0, "RIFF"), view.setUint32(4, 36 + data.length, true), text(8, "WAVEfmt ");
  view.setUint32(16, 16, true), view.setUint16(20, kind, true), view.setUint16(22, channels, true);
  view.setUint32(24, 16000, true), view.setUint16(32, channels * bits / 8, true);
  view.setUint16(34, bits, true), text(36, "data");
  view.setUint32(40, data.length, true);
  const bytes = new Uint8Array(view.buffer);
  bytes.set(data, 44);
  return bytes;
}

/** As libsndfile reads eight codes, in 16 bits. */
const A_LAW = [-5504, -8, 8, 5504, 848, -32256, -848, 2880];
const MU_LAW = [-32124, -716, 716, 32124, 0, -5372, 0, 14460];

const letters = (text: string) => new TextEncoder().encode(text);
const bytesOf = (array: ArrayBufferView) => new Uint8Array(array.buffer as ArrayBuffer);

Deno.test("samples of every width become numbers between -1 and 1", () => {
  const cases: readonly (readonly [number, number, Uint8Array])[] = [
    [1, 8, Uint8Array.of(128, 192, 0)],
    [1, 16, bytesOf(Int16Array.of(0, 0x4000, -0x8000))],
    [1, 24, Uint8Array.of(0, 0, 0, 0, 0, 0x40, 0, 0, 0x80)],
    [1, 32, bytesOf(Int32Array.of(0, 0x40000000, -0x80000000))],
    [3, 32, bytesOf(Float32Array.of(0, 0.5, -1))],
    [3, 64, bytesOf(Float64Array.of(0, 0.5, -1))],
  ];
  for (const [kind, bits, data] of cases) {
    const { samples, rate } = readWav(wav(kind, 1, bits, data));
    assertEquals([rate, ...samples], [16000, 0, 0.5, -1], `${bits} bits`);
  }
});

Deno.test("channels become their mean", () => {
  const { samples } = readWav(wav(3, 2, 32, bytesOf(Float32Array.of(1, 0, -1, -0.5))));
  assertEquals([...samples], [0.5, -0.75]);
});

Deno.test("what is no WAV file, cut off or compressed is refused", () => {
  assertThrows(() => readWav(new Uint8Array(20)), FormatError, "no WAV file");
  const whole = wav(1, 1, 16, new Uint8Array(8));
  const cut = assertThrows(() => readWav(whole.subarray(0, 48), "a.wav"), FormatError, "cut off");
  const remedy = "The sound is damaged or cut short: fetch it again, or save it anew as WAV";
  assertEquals(cut.remedy, remedy);
  assertThrows(() => readWav(whole.subarray(0, 36)), FormatError, "no data chunk");
  assertThrows(() => readWav(wav(85, 1, 0, new Uint8Array(2))), UnsupportedError, "kind 85");
  assertThrows(() => readWav(wav(1, 0, 16, new Uint8Array(2))), FormatError, "0 channels");
});

Deno.test("telephony's samples are those that libsndfile 1.2 reads", () => {
  const codes = Uint8Array.of(0x00, 0x55, 0xd5, 0x80, 0xff, 0x2a, 0x7f, 0x93);
  const wanted = { 6: A_LAW, 7: MU_LAW };
  for (const [kind, values] of Object.entries(wanted)) {
    const { samples } = readWav(wav(Number(kind), 1, 8, codes));
    assertEquals(Array.from(samples, (sample) => sample * 0x8000), values, `kind ${kind}`);
  }
});

Deno.test("a length that nobody knew is that of the file", () => {
  const samples = bytesOf(Int16Array.of(0, 0x4000));
  // As ffmpeg, arecord and sox write them, and who writes none at all.
  for (const [riff, data] of [[2 ** 32 - 1, 2 ** 32 - 1], [0x80000024, 0x80000000], [0, 0]]) {
    const piped = wav(1, 1, 16, samples), view = new DataView(piped.buffer);
    view.setUint32(4, riff!, true);
    view.setUint32(40, data!, true);
    assertEquals([...readWav(piped).samples], [0, 0.5], `${data}`);
  }
  assertEquals(readWav(wav(1, 1, 16, new Uint8Array())).samples.length, 0);
});

Deno.test("a size of 64 bits stands in a chunk of its own", () => {
  const plain = wav(1, 1, 16, bytesOf(Int16Array.of(0, 0x4000))), sizes = new Uint8Array(36);
  const view = new DataView(sizes.buffer);
  sizes.set([...letters("ds64"), 28]);
  view.setBigUint64(16, 4n, true);
  // What follows the samples is none.
  const long = Uint8Array.of(...plain.subarray(0, 12), ...sizes, ...plain.subarray(12), 9, 9, 9, 9);
  long.set(letters("RF64"));
  long.fill(0xff, 76, 80);
  assertEquals([...readWav(long).samples], [0, 0.5]);
});

Deno.test("channels that do not fit the size of a frame are refused", () => {
  const odd = wav(1, 2, 16, new Uint8Array(8));
  new DataView(odd.buffer).setUint16(22, 3, true);
  assertThrows(() => readWav(odd), FormatError, "4 bytes for samples of 3 channels with 16 bits");
});
