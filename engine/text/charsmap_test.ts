import { assertEquals, assertThrows } from "@std/assert";
import { FormatError } from "../errors.ts";
import { createCharsmap } from "./charsmap.ts";

/**
 * A map of one rule, "A" to "a", laid out as darts-clone does: the root's children begin at unit
 * 256 ^ label; a unit holds the label, a bit for "a value follows" and the offset of its children.
 */
function oneRuleMap(): Uint8Array {
  const units = new Uint32Array(512);
  units[0] = 256 << 10;
  const child = 256 ^ 0x41;
  const valueAt = 300;
  units[child] = 0x41 | (1 << 8) | ((child ^ valueAt) << 10);
  units[valueAt] = 0x80000000 | 1;
  const blob = new TextEncoder().encode("\0a\0");
  const bytes = new Uint8Array(4 + units.byteLength + blob.length);
  new DataView(bytes.buffer).setUint32(0, units.byteLength, true);
  bytes.set(new Uint8Array(units.buffer), 4);
  bytes.set(blob, 4 + units.byteLength);
  return bytes;
}

Deno.test("a character map replaces its keys and copies everything else", () => {
  const normalize = createCharsmap(oneRuleMap(), "toy");
  assertEquals(normalize("BAÁA👋"), "BaÁa👋");
  assertEquals(normalize(""), "");
});

Deno.test("an absent character map changes nothing", () => {
  assertEquals(createCharsmap(new Uint8Array(0), "toy")("Ａ"), "Ａ");
});

Deno.test("a character map that is shorter than it says is refused", () => {
  for (const bytes of [[1], [8, 0, 0, 0, 1, 2], [3, 0, 0, 0, 1, 2, 3], [0, 0, 0, 0]]) {
    assertThrows(
      () => createCharsmap(Uint8Array.from(bytes), "toy"),
      FormatError,
      "toy, precompiled_charsmap: ",
    );
  }
});

Deno.test("a character map of noise neither hangs nor reads outside itself", () => {
  const bytes = oneRuleMap();
  for (let i = 4; i < bytes.length; i++) bytes[i] = (i * 197) & 0xff;
  const text = "The quick brown fox".repeat(20);
  assertEquals(typeof createCharsmap(bytes, "toy")(text), "string");
});
