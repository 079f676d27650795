import { assertEquals } from "@std/assert";
import { BYTE_CHARS, bytesOfByteLevelText } from "./byte_level.ts";

Deno.test("the byte alphabet has 256 different printable characters", () => {
  assertEquals(new Set(BYTE_CHARS).size, 256);
  assertEquals(BYTE_CHARS.filter((char) => /[\p{C}\p{Z}]/u.test(char)), []);
  assertEquals([0x00, 0x20, 0x41, 0x7f, 0xad].map((byte) => BYTE_CHARS[byte]).join(""), "ĀĠAġŃ");
});

Deno.test("bytes come back from the alphabet, and a foreign text stands for itself", () => {
  const all = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  assertEquals(bytesOfByteLevelText(BYTE_CHARS.join("")), all);
  assertEquals(bytesOfByteLevelText("Ġ中"), new TextEncoder().encode("Ġ中"));
});
