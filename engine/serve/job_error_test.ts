import { assertEquals } from "@std/assert";
import { readSource } from "../decode/pictures/picture_source.ts";
import { ResourceError } from "../errors.ts";
import { writePng } from "../formats/media/write_png.ts";
import { fixturePath } from "../../tests/support/fixtures.ts";
import { failureOf } from "./job_error.ts";

async function failureOfPicture(bytes: Uint8Array): Promise<ReturnType<typeof failureOf>> {
  const address = `data:image/png;base64,${bytes.toBase64()}`;
  return failureOf(await readSource(address).catch((error: unknown) => error));
}

Deno.test("a picture of a request that is broken, or too large for any server, is the request's fault, and named", async () => {
  const png = writePng({ width: 2, height: 1, data: new Uint8Array(6) });
  const huge = Deno.readFileSync(fixturePath("pictures/hostile/huge_header.png"));
  const bomb = await failureOfPicture(huge);
  assertEquals([bomb.status, /^data: URL.*60000/.test(bomb.message)], [400, true], bomb.message);
  for (const bytes of [png.subarray(0, 40), new Uint8Array(5)]) {
    const { status, message } = await failureOfPicture(bytes);
    assertEquals([status, message.startsWith("data: URL")], [400, true], message);
  }
  // Memory of ours is short, where another time there may be more.
  assertEquals(failureOf(new ResourceError("no room", { file: "/models/a" })), {
    ...{ status: 503, message: "no room" },
  });
});
