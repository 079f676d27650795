import { assertEquals } from "@std/assert";
import { readNormalizer } from "./normalizer.ts";

// Texts from tokenizers 0.23.3.
Deno.test("accents go with the case unless the file says otherwise", () => {
  const cases = [
    [true, null, "ea"],
    [true, true, "ea"],
    [true, false, "éa"],
    [false, null, "Éa"],
    [false, true, "Ea"],
    [false, false, "Éa"],
  ] as const;
  for (const [lowercase, strip_accents, wanted] of cases) {
    const normalize = readNormalizer({
      value: { type: "BertNormalizer", lowercase, strip_accents },
      path: "normalizer",
      file: "toy",
    });
    assertEquals(normalize("Éa"), wanted, JSON.stringify({ lowercase, strip_accents }));
  }
});
