import { assertAlmostEquals, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { FormatError, UnsupportedError } from "../errors.ts";
import { ropeFrequencies, type RopeOptions } from "./rope.ts";

function frequencies(options: Partial<RopeOptions> = {}) {
  return ropeFrequencies({
    dim: 8,
    theta: 10000,
    context: 128,
    scaling: undefined,
    file: "toy",
    ...options,
  });
}

Deno.test("plain frequencies are theta^(-2i/d)", () => {
  assertEquals(frequencies(), {
    inverse: Float32Array.of(1, 0.1, 0.01, 0.001),
    magnitude: 1,
  });
});

Deno.test("linear scaling divides every frequency", () => {
  const { inverse } = frequencies({ scaling: { rope_type: "linear", factor: 4 } });
  assertEquals([...inverse], [0.25, 0.1 / 4, 0.01 / 4, 0.001 / 4].map(Math.fround));
});

Deno.test("the record of GGUF says none or its rule under type", () => {
  assertEquals(frequencies({ scaling: { type: "none", factor: 4 } }), frequencies());
  assertEquals(frequencies({ scaling: { type: "linear", factor: 2 } }).inverse[0], 0.5);
});

Deno.test("llama3 scaling keeps short waves, slows long ones and blends between", () => {
  const { inverse } = frequencies({
    dim: 6,
    theta: 1000,
    scaling: {
      rope_type: "llama3",
      factor: 8,
      low_freq_factor: 1,
      high_freq_factor: 4,
      original_max_position_embeddings: 100,
    },
  });
  assertEquals(inverse[0], 1); // 15.9 turns in 100 positions: above 4
  const blend = (100 * 0.1 / (2 * Math.PI) - 1) / 3; // 1.59 turns
  assertAlmostEquals(inverse[1]!, (1 - blend) * 0.1 / 8 + blend * 0.1, 1e-8);
  assertAlmostEquals(inverse[2]!, 0.01 / 8, 1e-9); // 0.159 turns: below 1
});

// dim 8, theta 10000, factor 4, original length 32, worked by hand from the rule.
Deno.test("yarn scaling blends by dimension and strengthens attention", () => {
  const { inverse, magnitude } = frequencies({
    scaling: { rope_type: "yarn", factor: 4, original_max_position_embeddings: 32 },
  });
  // Boundaries: 8 ln(32 / 2π β) / (2 ln 10000) = -0.8 → 0 for β = 32 and 0.71 → 1 for β = 1.
  assertEquals([...inverse], [1, 0.1 / 4, 0.01 / 4, 0.001 / 4].map(Math.fround));
  assertAlmostEquals(magnitude, 0.1 * Math.log(4) + 1, 1e-12);
});

// dim 64, theta 10000, original length 4096: boundaries 64 ln(4096 / 2π β) / (2 ln 10000) are 10.47 for β = 32 and
// 22.51 for β = 1; worked by hand.
Deno.test("yarn's boundaries are those of 32 turns and of 1 where the file names none", () => {
  const scaling = { rope_type: "yarn", factor: 4, original_max_position_embeddings: 4096 };
  const blended = (i: number, from: number, to: number) => {
    const stretched = (i - from) / (to - from);
    return 10000 ** (-i / 32) * (stretched / 4 + 1 - stretched);
  };
  const whole = frequencies({ dim: 64, scaling }).inverse;
  const exact = frequencies({ dim: 64, scaling: { ...scaling, truncate: false } }).inverse;
  for (const i of [11, 16, 22]) {
    assertAlmostEquals(whole[i]! / blended(i, 10, 23), 1, 1e-6);
    assertAlmostEquals(exact[i]! / blended(i, 10.472241, 22.513441), 1, 1e-6);
  }
});

Deno.test("stored factors divide the frequencies, one each", () => {
  const { inverse } = frequencies({ factors: Float32Array.of(1, 1, 2, 4) });
  assertEquals([...inverse], [1, 0.1, 0.005, 0.00025].map(Math.fround));
  assertThrows(() => frequencies({ factors: Float32Array.of(1) }), FormatError, "1 rotary factors");
});

Deno.test("an unknown rule is unsupported by name and a bad factor names its key", () => {
  const unknown = assertThrows(
    () => frequencies({ scaling: { rope_type: "spiral" } }),
    UnsupportedError,
  );
  assertMatch(
    unknown.message,
    /"spiral" is not built: known are default, linear, .*llama3, .*yarn/,
  );
  for (const factor of [0, -1, NaN, "8"]) {
    const bad = assertThrows(
      () => frequencies({ scaling: { rope_type: "linear", factor } }),
      FormatError,
    );
    assertMatch(bad.message, /rotary scaling, factor: must be a number above 0/);
  }
});

Deno.test("longrope divides by one list up to the original length and by another beyond", () => {
  const record = {
    rope_type: "longrope",
    short_factor: [1, 2, 4, 8],
    long_factor: [2, 4, 8, 16],
    original_max_position_embeddings: 16,
  };
  const plain = frequencies({}).inverse;
  const { inverse, long, magnitude } = frequencies({ scaling: record, context: 64 });
  assertEquals([...inverse], [...plain].map((f, i) => Math.fround(f / 2 ** i)));
  assertEquals([...long!.inverse], [...inverse].map((f) => Math.fround(f / 2)));
  assertEquals(long!.beyond, 16);
  assertAlmostEquals(magnitude, Math.sqrt(1 + Math.log(4) / Math.log(16)), 1e-12);
  const bad = assertThrows(
    () => frequencies({ scaling: { ...record, long_factor: [1] } }),
    FormatError,
  );
  assertMatch(bad.message, /rotary scaling, long_factor: must be 4 numbers above 0/);
});

Deno.test("the factor that GGUF has beside any rule strengthens attention", () => {
  const options = { dim: 8, theta: 10000, context: 64, file: "f" };
  for (const scaling of [{ attn_factor: 1.5 }, { type: "linear", factor: 4, attn_factor: 1.5 }]) {
    assertEquals(ropeFrequencies({ ...options, scaling }).magnitude, 1.5);
  }
});

Deno.test("a field that changes rotations and is not built is refused, and so is what is no number", () => {
  const options = { dim: 8, theta: 10000, context: 64, file: "f" };
  for (
    const field of [
      "alpha",
      "short_mscale",
      "long_mscale",
      "mrope_interleaved",
      "llama_4_scaling_beta",
    ]
  ) {
    const scaling = { rope_type: "default", [field]: 2 };
    assertThrows(() => ropeFrequencies({ ...options, scaling }), UnsupportedError, field);
  }
  for (const field of ["factor", "mscale", "mscale_all_dim", "attention_factor", "attn_factor"]) {
    for (const value of [NaN, Infinity]) {
      const scaling = { rope_type: "yarn", factor: 2, [field]: value };
      assertThrows(
        () => ropeFrequencies({ ...options, scaling }),
        FormatError,
        `scaling, ${field}`,
      );
    }
  }
});
