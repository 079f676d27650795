import {
  assert,
  assertEquals,
  assertFalse,
  assertLess,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { createHash } from "node:crypto";
import { type FileServer, startFileServer } from "../../../tests/support/file_server.ts";
import { ResourceError, SourceError } from "../../errors.ts";
import { downloadFile, type DownloadOptions } from "./download.ts";
import { openOutput, type OutputFile } from "./output.ts";

const SIZE = 1_000_003;
const DATA = makeData(SIZE, 1);
const OTHER = makeData(SIZE, 2);

function makeData(size: number, seed: number): Uint8Array {
  let state = seed;
  return Uint8Array.from({ length: size }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 24;
  });
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

interface Bench {
  readonly server: FileServer;
  readonly target: string;
  /** Downloads with small ranges and short waits. */
  fetch(options?: Partial<DownloadOptions>): ReturnType<typeof downloadFile>;
  /** True if `target` is there and right. */
  isRight(bytes?: Uint8Array): boolean;
  /** Names in the folder. */
  files(): string[];
}

async function withServer(use: (bench: Bench) => Promise<void>): Promise<void> {
  const folder = Deno.makeTempDirSync();
  await using server = startFileServer({ "/m.gguf": DATA });
  server.faults.etag = '"one"';
  const target = `${folder}/m.gguf`;
  try {
    await use({
      server,
      target,
      fetch: (options = {}) =>
        downloadFile({
          url: `${server.url}/m.gguf`,
          target,
          rangeBytes: 100_000,
          connections: 4,
          attempts: 3,
          backoffMs: 1,
          ...options,
        }),
      isRight: (bytes = DATA) => sha256(Deno.readFileSync(target)) === sha256(bytes),
      files: () => [...Deno.readDirSync(folder)].map(({ name }) => name).sort(),
    });
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

Deno.test("a download in parallel ranges gives the file, its hash, and nothing beside it", async () => {
  await withServer(async ({ server, fetch, isRight, files }) => {
    const seen: number[] = [];
    const result = await fetch({
      expected: { bytes: SIZE, sha256: sha256(DATA) },
      onBytes: (received, total) => {
        assertEquals(total, SIZE);
        seen.push(received);
      },
    });
    assertEquals(result, { bytes: SIZE, sha256: sha256(DATA) });
    assert(isRight());
    assertEquals(files(), ["m.gguf"]);
    assertEquals(server.sent, SIZE);
    assertEquals(server.requests.length, 11);
    assertEquals(seen.at(-1), SIZE);
    assert(seen.every((n, i) => i === 0 || n > seen[i - 1]), "progress only grows");
  });
});

Deno.test("connections that are cut go on where they broke off", async () => {
  await withServer(async ({ server, fetch, isRight }) => {
    Object.assign(server.faults, { cuts: 25, cutAfter: 30_000, piece: 10_000 });
    await fetch();
    assert(isRight());
    assertEquals(server.sent, SIZE);
  });
});

Deno.test("a line that stays dead keeps what came, and the next run fetches only the rest", async () => {
  await withServer(async ({ server, fetch, isRight, files }) => {
    Object.assign(server.faults, { cuts: 1e9, cutAfter: 500_000, piece: 50_000 });
    const failing = fetch({ rangeBytes: SIZE });
    // The first try brings half; every later one brings the rest of the half and so on, so stop it.
    await failing;
    assert(isRight());
    assertEquals(files(), ["m.gguf"]);
  });
  await withServer(async ({ server, fetch, isRight, files }) => {
    Object.assign(server.faults, { cuts: 1, cutAfter: 500_000, piece: 50_000 });
    const dead = fetch({
      rangeBytes: SIZE,
      onBytes: (received) => {
        if (received >= 500_000) Object.assign(server.faults, { failures: 1e9, status: 503 });
      },
    });
    const error = await assertRejects(() => dead, SourceError, "bytes are kept");
    assertStringIncludes(error.message, "goes on where it stopped");
    assertStringIncludes(error.message, `500000 of ${SIZE}`);
    assertEquals(files(), ["m.gguf.partial", "m.gguf.partial.json"]);

    Object.assign(server.faults, { failures: 0 });
    server.sent = 0;
    await fetch();
    assert(isRight());
    assertEquals(server.sent, SIZE - 500_000);
  });
});

Deno.test("an aborted download keeps what came and ends with the signal's reason", async () => {
  await withServer(async ({ server, fetch, isRight }) => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const running = fetch({
      signal: controller.signal,
      onBytes: (received) => received > 300_000 && controller.abort(reason),
    });
    assertEquals(await running.catch((error) => error), reason);
    server.sent = 0;
    await fetch();
    assert(isRight());
    assertLess(server.sent, SIZE - 300_000 + 1);
  });
});

Deno.test("a server that ignores ranges gives one stream, from 0 also after a partial download", async () => {
  await withServer(async ({ server, fetch, isRight, files }) => {
    const controller = new AbortController();
    await fetch({
      signal: controller.signal,
      onBytes: (received) => received > 300_000 && controller.abort(),
    }).catch(() => {});
    server.faults.ignoreRange = true;
    Object.assign(server.faults, { cuts: 1, cutAfter: 400_000 });
    server.sent = 0;
    await fetch();
    assert(isRight());
    assertEquals(server.sent, 400_000 + SIZE);
    assertEquals(files(), ["m.gguf"]);
  });
});

Deno.test("a partial file that is complete is verified and renamed without a request", async () => {
  await withServer(async ({ server, target, fetch, isRight, files }) => {
    Deno.writeFileSync(`${target}.partial`, DATA);
    writeNote(target, server, { size: SIZE, done: [[0, SIZE]] });
    await fetch({ expected: { sha256: sha256(DATA) } });
    assertEquals(server.requests.length, 0);
    assert(isRight());
    assertEquals(files(), ["m.gguf"]);
  });
});

function writeNote(
  target: string,
  server: FileServer,
  note: { size: number; done: number[][]; etag?: string; url?: string },
): void {
  const url = `${server.url}/m.gguf`;
  Deno.writeTextFileSync(`${target}.partial.json`, JSON.stringify({ url, etag: '"one"', ...note }));
}

Deno.test("partial files that cannot be right are not used: too long, no note, damaged note", async () => {
  const cases: ((target: string, server: FileServer) => void)[] = [
    (target, server) => {
      Deno.writeFileSync(`${target}.partial`, new Uint8Array(SIZE + 1));
      writeNote(target, server, { size: SIZE, done: [[0, SIZE]] });
    },
    (target) => Deno.writeFileSync(`${target}.partial`, new Uint8Array(SIZE)),
    (target, server) => {
      Deno.writeFileSync(`${target}.partial`, new Uint8Array(SIZE));
      writeNote(target, server, { size: SIZE, done: [[0, 10], [5, 20]] });
    },
    (target) => {
      Deno.writeFileSync(`${target}.partial`, new Uint8Array(SIZE));
      Deno.writeTextFileSync(`${target}.partial.json`, '{"url":');
    },
    // Another file that happens to be as long.
    (target, server) => {
      Deno.writeFileSync(`${target}.partial`, OTHER);
      writeNote(target, server, { size: SIZE, done: [[0, SIZE]], url: "http://127.0.0.1/other" });
    },
    // The file was longer when it was begun: the server answers 416 to the rest.
    (target, server) => {
      Deno.writeFileSync(`${target}.partial`, new Uint8Array(SIZE + 9));
      writeNote(target, server, { size: SIZE + 9, done: [[0, SIZE]] });
    },
  ];
  for (const prepare of cases) {
    await withServer(async ({ server, target, fetch, isRight, files }) => {
      prepare(target, server);
      await fetch();
      assert(isRight());
      assertEquals(files(), ["m.gguf"]);
    });
  }
});

Deno.test("content that changed between two runs or in the middle of one restarts the file", async () => {
  await withServer(async ({ server, target, fetch, isRight }) => {
    Deno.writeFileSync(`${target}.partial`, OTHER);
    writeNote(target, server, { size: SIZE, done: [[0, 900_000]], etag: '"zero"' });
    await fetch();
    assert(isRight());
  });
  await withServer(async ({ server, fetch, isRight }) => {
    let changed = false;
    await fetch({
      onBytes: (received) => {
        if (changed || received < 500_000) return;
        changed = true;
        server.files.set("/m.gguf", OTHER);
        server.faults.etag = '"two"';
      },
    });
    assert(isRight(OTHER));
  });
});

Deno.test("pieces of two versions without an etag are caught by the hash and fetched anew", async () => {
  await withServer(async ({ server, target, fetch, isRight }) => {
    server.faults.etag = undefined;
    Deno.writeFileSync(`${target}.partial`, OTHER);
    Deno.writeTextFileSync(
      `${target}.partial.json`,
      JSON.stringify({ url: `${server.url}/m.gguf`, size: SIZE, done: [[0, 900_000]] }),
    );
    await fetch({ expected: { sha256: sha256(DATA) } });
    assert(isRight());
  });
});

Deno.test("wrong bytes are refused with both hashes and not kept", async () => {
  await withServer(async ({ server, fetch, files }) => {
    server.files.set("/m.gguf", OTHER);
    for (const ignoreRange of [false, true]) {
      server.faults.ignoreRange = ignoreRange;
      const error = await assertRejects(
        () => fetch({ expected: { bytes: SIZE, sha256: sha256(DATA) } }),
        SourceError,
        sha256(DATA),
      );
      assertStringIncludes(error.message, sha256(OTHER));
      assertEquals(files(), []);
    }
  });
});

Deno.test("a length other than the expected one is refused before the download", async () => {
  for (const lie of [-5, 5, 1e15]) {
    await withServer(async ({ server, fetch, files }) => {
      server.faults.lie = lie;
      await assertRejects(
        () => fetch({ expected: { bytes: SIZE } }),
        SourceError,
        `${SIZE + lie} bytes, must have ${SIZE}`,
      );
      assertLess(server.sent, 300_001);
      assertEquals(files(), []);
    });
  }
});

Deno.test("a server that promises more than it sends ends in an error, never in a file", async () => {
  for (const ignoreRange of [false, true]) {
    await withServer(async ({ server, fetch, files }) => {
      Object.assign(server.faults, { lie: 10, ignoreRange });
      await assertRejects(() => fetch(), SourceError);
      assertFalse(files().includes("m.gguf"));
    });
  }
});

Deno.test("a length that no disk can hold ends in an error that says so", async () => {
  await withServer(async ({ server, fetch, files }) => {
    server.faults.lie = 2 ** 52;
    const error = await fetch().catch((error) => error);
    // A file system without such a limit takes the sparse file, and then the bytes do not come.
    assert(error instanceof ResourceError || error instanceof SourceError, String(error));
    assertFalse(files().includes("m.gguf"));
  });
});

Deno.test("busy servers are asked again, with the pause they ask for; refusals are not", async () => {
  await withServer(async ({ server, fetch, isRight }) => {
    Object.assign(server.faults, { failures: 2, status: 429, retryAfter: 0.05 });
    await fetch();
    assert(isRight());
  });
  for (
    const [status, words] of [[401, "HF_TOKEN"], [403, "terms"], [404, "no such file"]] as const
  ) {
    await withServer(async ({ server, fetch, files }) => {
      Object.assign(server.faults, { failures: 1, status });
      await assertRejects(() => fetch(), SourceError, words);
      assertEquals(server.requests.length, 1);
      assertEquals(files(), []);
    });
  }
});

Deno.test("a connection that falls silent is given up and tried again", async () => {
  await withServer(async ({ server, fetch, isRight }) => {
    server.faults.stallAfter = 64_000;
    server.faults.piece = 32_000;
    await fetch({ idleMs: 500, onBytes: () => delete server.faults.stallAfter });
    assert(isRight());
  });
});

Deno.test("no server at all is an error that says what to do", async () => {
  await withServer(async ({ fetch, files }) => {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const url = `http://127.0.0.1:${listener.addr.port}/m.gguf`;
    listener.close();
    await assertRejects(() => fetch({ url }), SourceError, "Check the network");
    assertEquals(files(), []);
  });
});

/** A disk that is full after `room` bytes; the error is the one that the system gives for /dev/full. */
function smallDisk(room: number): (path: string) => OutputFile {
  let left = room;
  return (path) => {
    const file = openOutput(path);
    return {
      ...file,
      write(offset, bytes) {
        left -= bytes.length;
        if (left >= 0) return file.write(offset, bytes);
        throw Object.assign(new Error("No space left on device (os error 28)"), { code: "ENOSPC" });
      },
    };
  };
}

Deno.test("a full disk is a ResourceError with numbers; the next run goes on", async () => {
  await withServer(async ({ server, fetch, isRight, files }) => {
    const error = await assertRejects(
      () => fetch({ openOutput: smallDisk(450_000) }),
      ResourceError,
      "the disk is full after",
    );
    assertStringIncludes(error.message, `of ${SIZE} bytes`);
    assertEquals(files(), ["m.gguf.partial", "m.gguf.partial.json"]);
    server.sent = 0;
    await fetch();
    assert(isRight());
    assertLess(server.sent, 600_000);
  });
  await withServer(async ({ server, fetch }) => {
    server.faults.ignoreRange = true;
    await assertRejects(() => fetch({ openOutput: smallDisk(450_000) }), ResourceError, "full");
  });
});

Deno.test({
  name: "the system's own error for a full disk is recognised",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await withServer(async ({ fetch }) => {
      const openFull = () => ({
        ...openOutput("/dev/full"),
        truncate: () => {},
        sync: () => Promise.resolve(),
      });
      await assertRejects(() => fetch({ openOutput: openFull }), ResourceError, "disk is full");
    });
  },
});

Deno.test("an empty file is a file", async () => {
  await withServer(async ({ server, fetch, isRight }) => {
    server.files.set("/m.gguf", new Uint8Array(0));
    assertEquals((await fetch()).bytes, 0);
    assert(isRight(new Uint8Array(0)));
  });
});

Deno.test("redirects are followed for every range", async () => {
  await withServer(async ({ server, fetch, isRight }) => {
    server.files.set("/cdn/blob", DATA);
    server.files.delete("/m.gguf");
    server.redirects.set("/m.gguf", { to: "/cdn/blob" });
    await fetch();
    assert(isRight());
  });
});
