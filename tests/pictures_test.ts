// Pictures beside PIL and transformers: read, refused, resized, cropped, prepared; and schedulers beside diffusers. The cases are those of
// `deno task fixtures`, in a small copy.

import { assertEquals, assertMatch } from "@std/assert";
import { pictures } from "../tools/fixtures/pictures.ts";
import { fixturePath } from "./support/fixtures.ts";

const CASES = [
  ...pictures.cases(fixturePath("pictures"), { device: "wasm", full: false }) as Iterable<
    { readonly name: string; run?(): void | Promise<void> }
  >,
];

for (const { name, run } of CASES) {
  if (run) Deno.test(`${name} is as outside implementations have it`, () => run());
}

Deno.test("all parts of the fixtures are among the cases", () => {
  const counts: Record<string, number> = {};
  for (const { name, run } of CASES) {
    const part = name.split("/")[1]!;
    if (run) counts[part] = (counts[part] ?? 0) + 1;
  }
  assertEquals(counts, {
    ...{ decode: 12, inputs: 3, resize: 26, hostile: 12, schedulers: 70 },
    ...{ clip_toy: 7, resnet_toy: 5, siglip_toy: 7, vit_toy: 5 },
    ...{ dinov2_toy: 5, dinov2_registers_toy: 5 },
    ...{ sd_toy: 3, pixart_toy: 1 },
    ...{ sdxl_pipeline: 1, sd3_pipeline: 1, pixart_pipeline: 1 },
  });
});

/** Reads a JPEG in another process, which has no permission at all. */
async function readElsewhere({ flags = [], env = {} }: {
  readonly flags?: readonly string[];
  readonly env?: Record<string, string>;
} = {}) {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--no-check", ...flags, "tests/support/read_picture_once.ts"],
    cwd: new URL("..", import.meta.url),
    env: { NO_COLOR: "1", ...env },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const file = await Deno.readFile(fixturePath("pictures/inputs/checker.jpg"));
  await new Blob([file]).stream().pipeTo(command.stdin);
  const { code, stdout, stderr } = await command.output();
  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, out: out!, err: err! };
}

Deno.test("a JPEG from elsewhere than a file is read without any permission", async () => {
  const { code, out } = await readElsewhere();
  assertEquals([code, out], [0, "41 × 50\n"]);
});

Deno.test("without its package and without a network the error says what to do", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const { code, err } = await readElsewhere({
      flags: ["--cached-only"],
      env: { DENO_DIR: folder },
    });
    assertEquals(code, 1);
    assertMatch(
      err,
      /SourceError: @jsquash\/jpeg: the decoder of these pictures could not be loaded/,
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
