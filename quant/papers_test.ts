// The formats of the four papers against the vectors of their sources.

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertGreater,
  assertLess,
  assertLessOrEqual,
  assertThrows,
} from "@std/assert";
import fc from "fast-check";
import { encodeAffine } from "./affine.ts";
import { type EncodeOptions, findFormat, formatBytes, getFormat, isFormatName } from "./mod.ts";
import { joinPair, secondOfPair } from "./formats/q3h_b64t1.ts";
import { normals } from "../tests/support/normals.ts";

function roundTrip(name: string, values: Float32Array, options?: EncodeOptions): Float32Array {
  const format = getFormat(name);
  const bytes = new Uint8Array(formatBytes(format, values.length));
  format.encode!(values, bytes, options);
  const out = new Float32Array(values.length);
  format.decode(bytes, out);
  return out;
}

function meanError(values: Float32Array, decoded: Float32Array): number {
  return values.reduce((sum, value, i) => sum + Math.abs(value - decoded[i]!), 0) / values.length;
}

const NORMAL = normals(1 << 17, 7);
const TABLE_2 = Float32Array.of(-1, -.9, -.6, -.4, -.2, 0, .1, .5, .7, 1, 1.3, 1.5);

Deno.test("table 2 of Inferflow comes out, its two misprints put right", () => {
  const rows = [
    [15, [0, 1, 2, 4, 5, 6, 7, 9, 10, 12, 14, 15], .366667],
    [10, [0, 0, 2, 2, 3, 4, 4, 6, 7, 8, 9, 10], .55],
    [7, [0, 0, 1, 2, 2, 3, 3, 4, 5, 6, 6, 7], .9],
  ] as const;
  for (const [top, expected, total] of rows) {
    const codes = new Uint8Array(12);
    const { scale, base } = encodeAffine(TABLE_2, 0, codes, { top });
    assertEquals([...codes], [...expected]);
    const errors = [...codes].map((code, i) => Math.abs(code * scale + base - TABLE_2[i]!));
    assertAlmostEquals(errors.reduce((sum, error) => sum + error), total, 1e-6);
    if (top !== 7) continue;
    const deltas = [0, .1, .043, .114, .086, .071, .029, .071, .086, .143, .157, 0];
    errors.forEach((error, i) => assertAlmostEquals(error, deltas[i]!, 5e-4));
  }
});

// Compiled from the upstream program, for the values below.
const UPSTREAM_BYTES = {
  Q8_B32T1:
    "40ba261e1d7ddd3797f751b10a6bcb2485e53e9fff58b91272d32c8ded46a70060c11a7ae0b9161ed52d8eef47a80061c31a7cdd3596f74fb00869ca2283e53c9eff57b81071d22a",
  Q8_B32T2:
    "4d1e9dfb59b61472d02e8be947a50361be1c7ad73593f14fac0a68c62481df3d9af84d1e56b41270cd2b89e745a2005ebb1977d53390ee4caa0866c3217fdc3a98f654b1",
  Q6_B64T1:
    "40ba7426349e348e278d2749e349d378d2789e34e7d5b4a39290706f5d4c2b1b1808e7d6c4a3a392806f5e4c4b2b1a08e7d6d6c3",
  Q5_B64T1:
    "40baab2ab4a4a5252d69694be36ad149c147af27ad258d058b036be369c149c147af27ad258d058be36be369",
  Q4_B32T1A: "40ba892e723df9a5612cd8945f1bc7834e0ab672e0b9772e3de8a4602bd7935f0ac6824df9b5712c",
  Q4_B32T1B: "deb9202e713df9b5602ce8935f1bd7824e0ac6717fb9102e2df8a4601cd7934f0bc6823ef9b5702d",
  Q4_B64T1: "40ba252f723cd8a4612bc7935e1ab6824d09a5713cd894602bc7835e1ab6724de9a5613c",
  Q3H_B64T1: "40ba0031cc4466327726d6d29989b577f8043c482b9c6a819ec083b4c2a914e8",
  Q3_B32T1A: "40ba0033b4b4a525ad6c6c285b1b1bd7e0b9ee322d69694bc6c6b5b1b1a16c6c",
  Q3_B32T1B: "7cb92032b4b4a5256c6c6c1c1b1b1bcb1eb910322d69694bc6c6b2b1b1716c6c",
  Q2_B32T1A: "40ba1538749e249e27992749e0b90b38e749d27992789e24",
  Q2_B32T1B: "b8b82036349e348e278d274d5cb81036e349d378d2389e34",
};
const RAMP = Float32Array.from({ length: 64 }, (_, i) => ((37 * i + 11) % 101 - 50) / 64);

for (const [name, expected] of Object.entries(UPSTREAM_BYTES)) {
  Deno.test(`${name} encodes to the bytes of Inferflow's own program`, () => {
    const format = findFormat(name, 64);
    const bytes = new Uint8Array(formatBytes(format, 64)).fill(0xa5);
    format.encode!(RAMP, bytes, { levels: "upstream" });
    assertEquals(bytes.toHex(), expected);
  });
}

Deno.test("the mean error of Q3H on the ramp is that of the upstream program", () => {
  assertAlmostEquals(meanError(RAMP, roundTrip("Q3H_B64T1", RAMP)), .0366211, 1e-7);
});

// Mean absolute error on N(0, 1), paper and upstream levels.
const LADDER: readonly (readonly [name: string, paper: number, upstream?: number])[] = [
  ["Q8_B32T1", .00387],
  ["Q8_0", .00448],
  ["Q6_B64T1", .01806, .01835],
  ["Q5_B64T1", .03666, .03789],
  ["Q4_B32T1A", .06478],
  ["Q4_B64T1", .07578, .08116],
  ["Q3H_B64T1", .1137],
  ["Q3_B32T1A", .1389],
];

Deno.test("the mean error of Inferflow's blocks on N(0, 1) rises as in the specification, within 2 %", () => {
  let before = 0;
  for (const [name, paper, upstream = paper] of LADDER) {
    const error = meanError(NORMAL, roundTrip(name, NORMAL));
    assertAlmostEquals(error / paper, 1, .02, name);
    const other = meanError(NORMAL, roundTrip(name, NORMAL, { levels: "upstream" }));
    assertAlmostEquals(other / upstream, 1, .02, `${name} upstream`);
    assertGreater(error, before);
    before = error;
  }
  const others = { Q4_B32T1B: .06876, Q3_B32T1B: .1374, Q2_B32T1A: .326, Q2_B32T1B: .2739 };
  for (const [name, expected] of Object.entries(others)) {
    assertAlmostEquals(meanError(NORMAL, roundTrip(name, NORMAL)) / expected, 1, .02, name);
  }
  const [q3h, q3] = ["Q3H_B64T1", "Q3_B32T1A"].map((name) =>
    meanError(NORMAL, roundTrip(name, NORMAL))
  );
  assertLessOrEqual(q3h! / q3!, .83);
});

Deno.test("all 121 pairs of Q3H come back, in 7 bits, in upstream's order", () => {
  for (let pair = 0; pair < 128; pair++) assertEquals(secondOfPair(pair), Math.floor(pair / 11));
  const seen = new Set<number>();
  for (let even = 0; even <= 10; even++) {
    for (let odd = 0; odd <= 10; odd++) {
      const pair = joinPair(even, odd);
      assertLess(pair, 121);
      assertEquals([pair - 11 * secondOfPair(pair), secondOfPair(pair)], [even, odd]);
      seen.add(pair);
    }
  }
  assertEquals(seen.size, 121);
  const codes = [0, 0, 2, 2, 3, 4, 4, 6, 7, 8, 9, 10];
  const pairs = [0, 1, 2, 3, 4, 5].map((i) => joinPair(codes[2 * i]!, codes[2 * i + 1]!));
  assertEquals(pairs, [0, 24, 47, 70, 95, 119]);
});

Deno.test("Q3H stores every pair of codes at every place", () => {
  const { encode, decode, blockBytes } = getFormat("Q3H_B64T1");
  for (let place = 0; place < 32; place++) {
    for (let pair = 0; pair < 121; pair++) {
      // Ends of the range elsewhere in the block, so that a code is its value.
      const values = Float32Array.from({ length: 64 }, (_, i) => i & 1 ? 10 : 0);
      values[2 * place] = pair % 11;
      values[2 * place + 1] = Math.floor(pair / 11);
      const bytes = new Uint8Array(blockBytes);
      encode!(values, bytes);
      const out = new Float32Array(64);
      decode(bytes, out);
      if (!out.every((value, i) => value === values[i])) assertEquals(out, values);
    }
  }
});

Deno.test("E0M4 to INT4 errors stand as in the paper, for each size of a group", () => {
  const ratios = { 32: [.99, 1.01], 64: [.965, .977], 128: [.95, .96], 256: [.942, .953] };
  for (const [group, [low, high]] of Object.entries(ratios)) {
    const int4 = meanError(NORMAL, roundTrip(`INT4_G${group}`, NORMAL));
    for (const suffix of ["", "_N2"]) {
      const ratio = meanError(NORMAL, roundTrip(`E0M4_G${group}${suffix}`, NORMAL)) / int4;
      assertGreater(ratio, low!, `group ${group}`);
      assertLess(ratio, high!, `group ${group}`);
    }
  }
});

Deno.test("E0M4 codes are fractions of halves from 2 to 3.875", () => {
  const format = getFormat("E0M4_G32");
  const bytes = new Uint8Array(20);
  const view = new DataView(bytes.buffer);
  view.setFloat16(0, 1, true);
  for (let j = 0; j < 16; j++) bytes[4 + j] = j & 1 ? 0 : (j | ((j + 1) << 4));
  const out = new Float32Array(32);
  format.decode(bytes, out);
  for (let j = 0; j < 16; j += 2) {
    assertEquals([out[2 * j], out[2 * j + 1]], [2 + j / 8, 2 + (j + 1) / 8]);
  }
});

const THROUGH_ZERO = ["E0M4_G32", "E0M4_G128_N2", "INT4_G64", "LF8", "I8PC_64", "I4PC_64"];
for (const name of [...THROUGH_ZERO, "Q8_GL_64", "Q8_LOG"]) {
  Deno.test(`${name} maps zero to zero`, () => {
    const values = normals(256, 3);
    for (let i = 0; i < 256; i += 5) values[i] = 0;
    const out = roundTrip(name, values);
    for (let i = 0; i < 256; i += 5) assertEquals(Math.abs(out[i]!), 0);
    assert(roundTrip(name, new Float32Array(256)).every((value) => value === 0));
  });
}

Deno.test("LF8 uses all 256 codes and errs by half a step at most, a quarter on average", () => {
  const values = normals(1 << 16, 11);
  const format = getFormat("LF8");
  const bytes = new Uint8Array(formatBytes(format, values.length));
  format.encode!(values, bytes);
  const view = new DataView(bytes.buffer);
  const out = roundTrip("LF8", values);
  let relative = 0, share = 0;
  for (let g = 0; g < values.length / 256; g++) {
    const group = values.subarray(g * 256, g * 256 + 256);
    const extreme = Math.max(...group.map(Math.abs));
    const scale = view.getFloat32(g * 260, true);
    assertEquals(scale, Math.fround(extreme / 127.5));
    group.forEach((value, j) => {
      const error = Math.abs(value - out[g * 256 + j]!);
      assertLessOrEqual(error, scale / 2 * (1 + 4e-5));
      if (value !== 0) relative += error / Math.abs(value);
      share += error / scale;
      const code = view.getInt8(g * 260 + 4 + j);
      if (value === extreme) assertEquals(code, 127);
      if (value === -extreme) assertEquals(code, -128);
    });
  }
  assertAlmostEquals(share / values.length, .251, .004);
  assertGreater(relative / values.length, .029);
  assertLess(relative / values.length, .035);
  format.encode!(Float32Array.from({ length: 256 }, (_, i) => i - 128), bytes, {
    levels: "upstream",
  });
  assertEquals(view.getFloat32(0, true), Math.fround(128 / 127));
});

Deno.test("per-channel formats have a scale a row", () => {
  const values = Float32Array.of(1, -2, .5, 0, 10, 20, -30, 7.5);
  const i8 = getFormat("I8PC_4");
  assertEquals([i8.blockSize, i8.blockBytes, formatBytes(i8, 8)], [4, 8, 16]);
  const bytes = new Uint8Array(16);
  i8.encode!(values, bytes);
  const view = new DataView(bytes.buffer);
  assertEquals(
    [0, 8].map((at) => view.getFloat32(at, true)),
    [2, 30].map((x) => Math.fround(x / 127)),
  );
  assertEquals([...new Int8Array(bytes.buffer, 4, 4)], [64, -127, 32, 0]);
  const out = roundTrip("I4PC_4", values);
  assertAlmostEquals(out[1]!, -2, 1e-6);
  assertAlmostEquals(out[6]!, -30, 1e-5);
  assertThrows(() => getFormat("I4PC_5"), RangeError, "multiples of 2");
  assertThrows(() => getFormat("I8PC_0"), RangeError, "known are");
});

Deno.test("Q8_GL rows decode alone and share the scales of the tensor", () => {
  const values = Float32Array.of(1, -.5, 0, .25, 3, -6, 1.5, 0);
  const format = getFormat("Q8_GL_4");
  const whole = new Uint8Array(24);
  format.encode!(values, whole);
  const parts = new Uint8Array(24);
  for (const row of [0, 1]) {
    const range = [-6, 3] as const;
    format.encode!(values.subarray(row * 4, row * 4 + 4), parts.subarray(row * 12), { range });
  }
  assertEquals(parts, whole);
  const out = new Float32Array(4);
  format.decode(whole.subarray(12), out);
  assertAlmostEquals(out[0]!, 3, 1e-6);
  assertAlmostEquals(out[1]!, -6, 1e-6);
});

Deno.test("Q8_LOG holds every code, and small values to a tenth of a thousandth", () => {
  const format = getFormat("Q8_LOG");
  const codes = Uint8Array.from({ length: 256 }, (_, i) => i).filter((code) => code !== 128);
  const values = new Float32Array(255);
  format.decode(codes, values);
  const again = new Uint8Array(255);
  format.encode!(values, again);
  assertEquals(again, codes);
  const small = Float32Array.of(.0004, -.0007, .00096, .00101);
  roundTrip("Q8_LOG", small).forEach((value, i) => assertAlmostEquals(value, small[i]!, 5.1e-5));
  assertThrows(
    () => format.encode!(Float32Array.of(1, 80), again),
    RangeError,
    "value 1 as Q8_LOG",
  );
});

Deno.test("Q4_B16 holds what its bytes of fixed point can, and refuses the rest", () => {
  const values = normals(64, 5).map((value) => value * .1);
  const error = meanError(values, roundTrip("Q4_B16", values));
  assertLess(error, .01);
  const far = new Float32Array(16).fill(-1.2);
  assertThrows(
    () => getFormat("Q4_B16").encode!(far, new Uint8Array(10)),
    RangeError,
    "block from value 0 as Q4_B16",
  );
});

// Formats whose levels reach both ends of the range; their decoded values are met again.
const STABLE = ["Q8_B32T1", "Q6_B64T1", "Q5_B64T1", "Q4_B32T1A", "Q4_B64T1", "Q3H_B64T1"];
for (
  const name of [...STABLE, "Q3_B32T1A", "Q2_B32T1A", "I8PC_64", "I4PC_64", "Q8_LOG", "Q8_GL_64"]
) {
  Deno.test(`${name}: what was decoded is encoded to the same values`, () => {
    const once = roundTrip(name, normals(1024, 9));
    const twice = roundTrip(name, once);
    once.forEach((value, i) => assertAlmostEquals(twice[i]!, value, 4e-3 * Math.abs(value) + 2e-3));
    const thrice = roundTrip(name, twice);
    thrice.forEach((value, i) =>
      assertAlmostEquals(value, once[i]!, 4e-3 * Math.abs(value) + 2e-3)
    );
  });
}

const BLOCKS = [...STABLE, "Q4_B32T1B", "Q3_B32T1A", "Q3_B32T1B", "Q2_B32T1A", "Q2_B32T1B"];
const OTHERS = ["LF8", "I8PC_256", "I4PC_256", "Q8_GL_256", "E0M4_G32", "E0M4_G128", "INT4_G128"];
for (const name of [...BLOCKS, ...OTHERS, "E0M4_G256_N2"]) {
  Deno.test(`${name} keeps constant blocks, and stays finite down to denormals`, () => {
    for (const constant of [0, 1, -1, 0.1, -3.7e-3, 1000, 6e-5]) {
      const values = new Float32Array(256).fill(constant);
      for (const value of roundTrip(name, values)) {
        // LF8 puts the greatest value half a step beyond its last code.
        const relative = name === "LF8" ? 1 / 254 : 2 ** -10;
        assertAlmostEquals(value, constant, Math.abs(constant) * relative + 2 ** -25);
      }
    }
    for (const exponent of [-14, -18, -22, -26, -40, -126, -140]) {
      const values = normals(256, 13).map((value) => value * 2 ** exponent);
      const greatest = Math.max(...values.map(Math.abs));
      const out = roundTrip(name, values);
      // Of what 16 bits hold, never further off than the greatest value or the last place.
      out.forEach((value, i) =>
        assertLessOrEqual(Math.abs(value - values[i]!), greatest + 2 ** -23, `2^${exponent}`)
      );
    }
    // Far below 1e-5, where upstream would flush: still as good as at any other size.
    const values = normals(256, 17);
    const tiny = values.map((value) => value * 2 ** -12);
    const [error, small] = [values, tiny].map((list) => meanError(list, roundTrip(name, list)));
    assertLess(small! * 2 ** 12, error! * 1.1 + .001);
  });
}

for (const name of [...BLOCKS, ...OTHERS, "Q4_B16", "Q8_LOG"]) {
  Deno.test(`${name} refuses NaN, infinities and scales that do not fit, with the index`, () => {
    const format = getFormat(name);
    const bytes = new Uint8Array(formatBytes(format, 512));
    for (const bad of [NaN, Infinity, -Infinity]) {
      const values = new Float32Array(512);
      values[300] = bad;
      assertThrows(() => format.encode!(values, bytes), RangeError, `value 300 as ${name}`);
    }
    const floatScale = ["LF8", "I8PC_256", "I4PC_256", "Q8_GL_256"].includes(name);
    const huge = Float32Array.from({ length: 512 }, (_, i) => i === 301 ? 3e38 : -3e38);
    if (floatScale) {
      roundTrip(name, huge).forEach((v, i) => assertAlmostEquals(v / huge[i]!, 1, 1 / 254));
    } else {
      assertThrows(() => format.encode!(huge, bytes), RangeError, `as ${name}`);
    }
  });
}

Deno.test("names are found in either case, by alias, and with the columns of a row", () => {
  assertEquals(findFormat("e0m4", 256).name, "E0M4_G128");
  assertEquals(findFormat("q8_b32t2", 32).name, "Q8_0");
  assertEquals(findFormat("Q3", 32).name, "Q3_B32T1B");
  assertEquals(findFormat("i8pc", 576).name, "I8PC_576");
  assertEquals(findFormat("q4_k", 256).name, "Q4_K");
  assert(isFormatName("q3h") && isFormatName("i4pc") && !isFormatName("q9"));
  assertThrows(() => findFormat("q9", 32), RangeError, "known are");
  // The two names of one block agree to the byte with Inferflow's description.
  fc.assert(
    fc.property(
      fc.array(fc.float({ noNaN: true, min: -4, max: 4 }), { minLength: 32, maxLength: 32 }),
      (list) => {
        const values = Float32Array.from(list);
        const codes = new Uint8Array(32);
        const { scale, base } = encodeAffine(values, 0, codes, { top: 31 });
        const bytes = new Uint8Array(24);
        findFormat("Q5_B32T1", 32).encode!(values, bytes);
        const view = new DataView(bytes.buffer);
        if (scale < 2 ** -14) return; // ggml rounds scales among the subnormals to nearest.
        assertEquals(view.getFloat16(0, true), new Float16Array([scale])[0]);
        assertEquals(view.getFloat16(2, true), new Float16Array([base])[0]);
        for (let i = 0; i < 32; i++) {
          const low = (bytes[8 + (i & 15)]! >> (i & 16 ? 4 : 0)) & 15;
          assertEquals(low | (((bytes[4 + (i >> 3)]! >> (i & 7)) & 1) << 4), codes[i]);
        }
      },
    ),
    { seed: 5, numRuns: 100 },
  );
});
