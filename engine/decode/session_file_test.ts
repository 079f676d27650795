import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { FormatError } from "../errors.ts";
import { packSession, unpackSession } from "./session_file.ts";

const fingerprint = Uint8Array.from({ length: 32 }, (_, i) => i);
const session = {
  tokens: Int32Array.of(5, 6, 7),
  state: Uint8Array.of(1, 2, 3, 4, 5),
  sourceLength: 9,
};

async function refusal(bytes: Uint8Array, print: Uint8Array = fingerprint): Promise<string> {
  return (await assertRejects(() => unpackSession(bytes, { fingerprint: print }), FormatError))
    .message;
}

Deno.test("a saved session comes back, also from the middle of a buffer", async () => {
  const bytes = await packSession({ fingerprint, ...session });
  const inside = new Uint8Array(bytes.length + 3).subarray(1, bytes.length + 1);
  inside.set(bytes);
  for (const form of [bytes, inside]) {
    const { tokens, state, sourceLength } = await unpackSession(form, { fingerprint });
    assertEquals([...tokens], [5, 6, 7]);
    assertEquals(sourceLength, 9);
    assertEquals([...state], [1, 2, 3, 4, 5]);
  }
});

Deno.test("every truncation and every changed byte is refused", async () => {
  const bytes = await packSession({ fingerprint, ...session });
  for (let length = 0; length < bytes.length; length++) await refusal(bytes.slice(0, length));
  await refusal(Uint8Array.of(...bytes, 0));
  for (let index = 0; index < bytes.length; index++) {
    const changed = bytes.slice();
    changed[index]! ^= 1;
    await refusal(changed);
  }
});

Deno.test("foreign bytes, another model and another version are named", async () => {
  const bytes = await packSession({ fingerprint, ...session });
  assertMatch(await refusal(new Uint8Array(200)), /is not a saved session/);
  assertMatch(await refusal(bytes, fingerprint.toReversed()), /another model/);
  for (const version of [1, 4]) {
    const other = bytes.slice();
    other[40] = version;
    assertMatch(
      await refusal(other),
      new RegExp(`has version ${version}, and only 2 and 3 are read`),
    );
  }
});
