// The conformance tests inside the PyPI wheel of `onnx`: fetched once into the model cache, read out of
// the archive into memory (11 MB). Later wheels than 1.22.0 carry no tests.

import { cacheFolder } from "../../engine/formats/hub/cache.ts";
import { openWheelStore } from "../../engine/formats/hub/pypi.ts";
import { readZipDirectory, readZipEntry } from "../../engine/formats/hub/zip.ts";
import { openFile } from "../../engine/io.ts";

const VERSION = "1.22.0";
const DATA = "onnx/backend/test/data/";

/** One test of the wheel. */
export interface WheelTest {
  /** `node/test_abs`. */
  readonly name: string;
  /** Bytes by path inside the test's folder: `model.onnx`, `test_data_set_0/input_0.pb`. */
  readonly files: ReadonlyMap<string, () => Promise<Uint8Array<ArrayBuffer>>>;
}

/** Every test of the wheel that has a model. */
export async function wheelTests(): Promise<WheelTest[]> {
  const store = openWheelStore(cacheFolder());
  const source = openFile(await store.get({ package: "onnx", version: VERSION, member: "" }));
  const tests = new Map<string, Map<string, () => Promise<Uint8Array<ArrayBuffer>>>>();
  for (const [path, entry] of await readZipDirectory(source)) {
    const parts = path.startsWith(DATA) ? path.slice(DATA.length).split("/") : [];
    if (parts.length < 3 || entry.bytes === 0 && !path.endsWith(".pb")) continue;
    const name = parts.slice(0, 2).join("/");
    const files = tests.get(name) ?? new Map();
    tests.set(name, files);
    files.set(parts.slice(2).join("/"), async () => {
      const bytes = new Uint8Array(entry.bytes);
      let at = 0;
      for await (const piece of readZipEntry(source, entry)) {
        bytes.set(piece, at);
        at += piece.length;
      }
      return bytes;
    });
  }
  return [...tests].filter(([, files]) => files.has("model.onnx"))
    .map(([name, files]) => ({ name, files }))
    .sort((a, b) => a.name < b.name ? -1 : 1);
}
