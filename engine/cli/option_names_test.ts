import { assertEquals } from "@std/assert";
import { inFlags } from "./option_names.ts";

Deno.test("options are named by their flags, also with a value behind a colon", () => {
  assertEquals(
    inFlags('Load with a larger contextLength, or use onContextFull: "slide" or "stop"'),
    'Load with a larger --context, or use --context-full "slide" or "stop"',
  );
  assertEquals(
    inFlags("Load the model with contextLength: 12 or more"),
    "Load the model with --context 12 or more",
  );
  assertEquals(inFlags('load with precision "exact"'), 'load with --precision "exact"');
  assertEquals(inFlags("Load with maxHostBytes 9"), "Load with --max-host-bytes 9");
  assertEquals(inFlags("Cannot use maxTokens 1.5"), "Cannot use --max-tokens 1.5");
});

Deno.test("names of files, and words that are no option, stay", () => {
  for (
    const text of [
      "cacheDir/x.gguf: empty",
      "./my-contextLength.gguf",
      "contextLengths",
      "topK 3",
      "half precision",
    ]
  ) {
    assertEquals(inFlags(text), text);
  }
});
