import { assertEquals, assertThrows } from "@std/assert";
import { UsageError } from "./args.ts";
import { bytesOf, namedModels } from "./serve_flags.ts";

Deno.test("models are called as they are named, or as their file without its ending", () => {
  const given = [
    "smollm2-135m",
    "small=models/tiny.gguf",
    "models/Big-Q8_0.gguf",
    "folders/encoder/",
    "https://example.org/a/remote.gguf?download=true",
    "hf:owner/repo/file.gguf@main",
    "pypi:package/inner.onnx",
    "C:\\models\\windows.gguf",
  ];
  assertEquals(namedModels(given).map(({ name }) => name), [
    ...["smollm2-135m", "small", "Big-Q8_0", "encoder", "remote", "file", "inner", "windows"],
  ]);
  assertEquals(namedModels(given)[1]!.source, "models/tiny.gguf");
  assertEquals(namedModels([]).map(({ name }) => name), ["smollm2-135m"]);
  assertThrows(() => namedModels(["a/m.gguf", "b/m.gguf"]), UsageError, "called m");
});

Deno.test("sizes are read as people write them", () => {
  assertEquals(["2G", "800M", "1.5 GiB", "512kb", "1000"].map(bytesOf), [
    ...[2 ** 31, 800 * 2 ** 20, 1.5 * 2 ** 30, 2 ** 19, 1000],
  ]);
  for (const wrong of ["much", "0", "-1G", "1X"]) assertThrows(() => bytesOf(wrong), UsageError);
});
