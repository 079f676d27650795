import { assertEquals, assertLess, assertRejects } from "@std/assert";
import { type FileServer, startFileServer } from "../../../tests/support/file_server.ts";
import { f32Bytes, writeGguf } from "../../../tests/support/write_gguf.ts";
import { FormatError, SourceError } from "../../errors.ts";
import { isMissing } from "../../io.ts";
import { openModel } from "../../models/open_model.ts";
import { openRemoteSource, openUrl } from "./url_source.ts";

const TENSOR_BYTES = 8 << 20;
const MODEL = writeGguf({ "general.architecture": ["string", "llama"] }, [
  { name: "w", dims: [TENSOR_BYTES / 4], type: 0, data: new Uint8Array(TENSOR_BYTES).fill(7) },
]);
const FAST = { attempts: 2, backoffMs: 1 };

async function withServer(use: (server: FileServer) => Promise<void>): Promise<void> {
  await using server = startFileServer({ "/d/m.gguf": MODEL });
  server.faults.etag = '"one"';
  await use(server);
}

Deno.test("a remote GGUF opens by ranges and its tensors stay on the server", async () => {
  await withServer(async (server) => {
    const model = await openModel(await openUrl(`${server.url}/d/m.gguf`, FAST));
    assertEquals(model.metadata.get("general.architecture"), "llama");
    const { source, offset, byteLength } = model.tensors.get("w")!;
    assertEquals(byteLength, TENSOR_BYTES);
    assertLess(server.sent, 2 << 20);
    const few = new Uint8Array(100);
    await source.readInto(offset + 1_000_000, few);
    assertEquals([...few], new Array(100).fill(7));
    model.close();
    await assertRejects(async () => await source.readInto(0, few), TypeError, "closed");
  });
});

Deno.test("reads across blocks, large reads and reads into shared memory give the same bytes", async () => {
  const data = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 31) >> 3);
  await withServer(async (server) => {
    server.files.set("/d/x", data);
    const source = await openUrl(`${server.url}/d/x`, FAST);
    assertEquals(source.size, data.length);
    const places = [[0, 10], [65_530, 20], [131_000, 65_000], [1, 200_000], [299_990, 10], [
      65_536,
      1,
    ]];
    for (const [offset, length] of places) {
      const target = new Uint8Array(new SharedArrayBuffer(length + 3), 3);
      await source.readInto(offset, target);
      assertEquals(target.slice(), data.slice(offset, offset + length));
    }
    const before = server.requests.length;
    await source.readInto(65_530, new Uint8Array(20));
    assertEquals(server.requests.length, before, "blocks are kept");
    await assertRejects(async () => await source.readInto(299_999, new Uint8Array(2)), FormatError);
    source.close();
  });
});

Deno.test("cut connections are tried again; a file that changes is noticed", async () => {
  await withServer(async (server) => {
    Object.assign(server.faults, { cuts: 1, cutAfter: 1000, piece: 500 });
    const source = await openUrl(`${server.url}/d/m.gguf`, FAST);
    server.faults.etag = '"two"';
    await assertRejects(
      async () => await source.readInto(1 << 20, new Uint8Array(10)),
      SourceError,
      "changed",
    );
  });
});

Deno.test("servers without ranges, missing and empty files are told apart", async () => {
  await withServer(async (server) => {
    const missing = await openUrl(`${server.url}/none`, FAST).catch((error) => error);
    assertEquals(isMissing(missing), true, String(missing));
    server.files.set("/empty", f32Bytes([]));
    await assertRejects(() => openUrl(`${server.url}/empty`, FAST), FormatError, "0 bytes");
    server.faults.ignoreRange = true;
    await assertRejects(
      () => openUrl(`${server.url}/d/m.gguf`, FAST),
      SourceError,
      "parts of files",
    );
    Object.assign(server.faults, { failures: 9, status: 503 });
    await assertRejects(() => openUrl(`${server.url}/d/m.gguf`, FAST), SourceError, "503");
  });
});

Deno.test("siblings are found beside the URL; hub names become URLs with the token", async () => {
  await withServer(async (server) => {
    server.files.set("/d/config.json", f32Bytes([1]));
    const source = await openUrl(`${server.url}/d/m.gguf?sig=1`.replace("?sig=1", ""), FAST);
    assertEquals((await source.openSibling!("config.json")).size, 4);
    await assertRejects(async () => await source.openSibling!("../secret"), FormatError, "plain");

    server.files.set("/o/r/resolve/v1/f.gguf", MODEL);
    const options = { ...FAST, endpoint: server.url, token: "secret" };
    assertEquals((await openRemoteSource("hf:o/r/f.gguf@v1", options)!).size, MODEL.length);
    assertEquals(server.requests.at(-1)!.headers.get("authorization"), "Bearer secret");
    assertEquals(openRemoteSource("./path.gguf"), undefined);
    assertEquals(openRemoteSource("smollm2-135m"), undefined);
  });
});
