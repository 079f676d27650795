import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { FormatError, SourceError } from "./errors.ts";
import { isMissing, listFolder, memorySource, openFile, pathKind, siblingPath } from "./io.ts";

const DATA = Uint8Array.from({ length: 5000 }, (_, i) => i & 255);

function withFolder(use: (folder: string) => void): void {
  const folder = Deno.makeTempDirSync();
  try {
    use(folder);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

Deno.test("openFile() reads any range, also into shared memory at an offset", () => {
  withFolder((folder) => {
    Deno.writeFileSync(`${folder}/a`, DATA);
    const source = openFile(`${folder}/a`);
    assertEquals(source.size, 5000);
    const shared = new Uint8Array(new SharedArrayBuffer(4000), 1000, 300);
    source.readInto(4700, shared);
    assertEquals([...shared], [...DATA.subarray(4700)]);
    source.readInto(5000, new Uint8Array(0));
    source.close();
  });
});

Deno.test("a range that leaves the source is refused before anything is read", () => {
  withFolder((folder) => {
    Deno.writeFileSync(`${folder}/a`, DATA);
    const file = openFile(`${folder}/a`);
    for (const source of [file, memorySource("m", DATA)]) {
      for (const [offset, length] of [[4999, 2], [5001, 0], [-1, 1], [0.5, 1], [2 ** 60, 1]]) {
        const target = new Uint8Array(length).fill(7);
        assertThrows(() => source.readInto(offset, target), FormatError, "the file has 5000");
        assertEquals([...target], new Array(length).fill(7));
      }
    }
    file.close();
  });
});

Deno.test("a file that shrinks after it was opened is an error, not zeros", () => {
  withFolder((folder) => {
    Deno.writeFileSync(`${folder}/a`, DATA);
    const source = openFile(`${folder}/a`);
    Deno.truncateSync(`${folder}/a`, 4100);
    const error = assertThrows(() => source.readInto(4000, new Uint8Array(1000)), FormatError);
    assertStringIncludes(error.message, "byte 4100");
    source.close();
  });
});

Deno.test("reading after close() throws and closing twice does not", () => {
  withFolder((folder) => {
    Deno.writeFileSync(`${folder}/a`, DATA);
    const source = openFile(`${folder}/a`);
    source.close();
    source.close();
    assertThrows(() => source.readInto(0, new Uint8Array(1)), TypeError, "closed");
  });
});

Deno.test("a file is read beside this thread, which reads it meanwhile", async () => {
  const folder = Deno.makeTempDirSync(), path = `${folder}/a`, length = 3 << 20;
  const data = Uint8Array.from({ length: 4 << 20 }, (_, i) => Math.imul(i, 2654435761) >>> 24);
  Deno.writeFileSync(path, data);
  const source = openFile(path);
  const target = new Uint8Array(length), other = new Uint8Array(100);
  const reading = source.readBeside!(500_001, target);
  assert(reading);
  // One at a time.
  assertEquals(source.readBeside!(0, new Uint8Array(length)), undefined);
  source.readInto(77, other);
  await reading;
  assertEquals(other, data.slice(77, 177));
  assertEquals(target, data.slice(500_001, 500_001 + length));
  await source.readBeside!(0, target);
  assertEquals(target, data.slice(0, length));
  // What is sooner read at once, and what others see as it comes.
  assertEquals(source.readBeside!(0, other), undefined);
  const shared = new Uint8Array(new SharedArrayBuffer(length));
  assertEquals(source.readBeside!(0, shared), undefined);
  assertThrows(() => source.readBeside!(2_000_000, target), FormatError, "the file has 4194304");
  Deno.truncateSync(path, 3_000_000);
  await assertRejects(() => source.readBeside!(500_000, target)!, FormatError, "byte 3000000");
  source.close();
  assertThrows(() => source.readBeside!(0, target), TypeError, "closed");
  Deno.removeSync(folder, { recursive: true });
});

Deno.test("a file that another has taken the place of is not read beside", () => {
  withFolder((folder) => {
    const target = new Uint8Array(3 << 20);
    Deno.writeFileSync(`${folder}/a`, target.fill(1));
    Deno.writeFileSync(`${folder}/b`, target.fill(2));
    const source = openFile(`${folder}/a`);
    Deno.renameSync(`${folder}/b`, `${folder}/a`);
    assertEquals(source.readBeside!(0, target), undefined);
    source.readInto(0, target);
    assertEquals(target[0], 1);
    source.close();
  });
});

Deno.test("memorySource() honours a view that starts inside its buffer", () => {
  const larger = new Uint8Array(5001);
  larger.set(DATA, 1);
  const source = memorySource("view", larger.subarray(1));
  const target = new Uint8Array(10);
  source.readInto(100, target);
  assertEquals([...target], [...DATA.subarray(100, 110)]);
});

Deno.test("openFile() says what is wrong with a missing path and with a folder", () => {
  withFolder((folder) => {
    const missing = assertThrows(() => openFile(`${folder}/none`), SourceError, "no such file");
    assert(isMissing(missing));
    const error = assertThrows(() => openFile(folder), SourceError, "folder, not a file");
    assert(!isMissing(error));
  });
});

Deno.test("openSibling() opens a file beside and never one elsewhere", () => {
  withFolder((folder) => {
    Deno.mkdirSync(`${folder}/in`);
    Deno.writeFileSync(`${folder}/in/a`, DATA);
    Deno.writeFileSync(`${folder}/in/b`, DATA.subarray(0, 7));
    Deno.writeFileSync(`${folder}/secret`, DATA);
    const source = openFile(`${folder}/in/a`);
    const sibling = source.openSibling!("b");
    assert(!(sibling instanceof Promise));
    assertEquals(sibling.size, 7);
    sibling.close();
    Deno.mkdirSync(`${folder}/in/sub`);
    Deno.writeFileSync(`${folder}/in/sub/c`, DATA.subarray(0, 5));
    const below = source.openSibling!("sub/c");
    assert(!(below instanceof Promise));
    assertEquals(below.size, 5);
    below.close();
    for (
      const name of [
        "../secret",
        "..",
        ".",
        "",
        "x/../../secret",
        "/etc/passwd",
        "..\\secret",
        "C:x",
        "a\0b",
      ]
    ) {
      assertThrows(() => source.openSibling!(name), FormatError, "plain file name");
    }
    source.close();
  });
});

Deno.test("siblingPath() keeps the folder part as it is", () => {
  assertEquals(siblingPath("a.gguf", "b"), "b");
  assertEquals(siblingPath("x/y/a.gguf", "b"), "x/y/b");
  assertEquals(siblingPath("/a.gguf", "b"), "/b");
});

Deno.test("pathKind() and listFolder() tell files from folders", () => {
  withFolder((folder) => {
    Deno.writeFileSync(`${folder}/z`, DATA);
    Deno.mkdirSync(`${folder}/sub`);
    assertEquals(listFolder(folder), ["sub/", "z"]);
    assertEquals(pathKind(folder), "folder");
    assertEquals(pathKind(`${folder}/z`), "file");
    assertEquals(pathKind(`${folder}/none`), undefined);
  });
});

Deno.test("a GPU is asked for where a card may be, and wherever that can't be seen", async () => {
  const code = 'console.log((await import("./engine/io.ts")).mayHaveGpu())';
  const run = async (flag: string) => {
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "--no-prompt",
        "--quiet",
        flag,
        "data:text/typescript," + encodeURIComponent(
          code.replace("./", import.meta.resolve("./../")),
        ),
      ],
    }).output();
    return new TextDecoder().decode(stdout).trim();
  };
  const files = ["/dev/nvidiactl", "/dev/dxg", "/dev/kfd", "/dev/mali0"];
  const isThere = (path: string) => pathKind(path) !== undefined;
  const seen = files.some(isThere) ||
    isThere("/dev/dri") && listFolder("/dev/dri").some((name) => name.startsWith("renderD"));
  assertEquals(await run("-A"), String(Deno.build.os !== "linux" || seen));
  assertEquals(await run(`--allow-read=${new URL("../", import.meta.url).pathname}`), "true");
});
