// Pictures beside PIL and transformers: read, refused, resized, cropped, prepared; and schedulers beside diffusers. The cases are those of
// `deno task fixtures`, in a small copy.

import { assertEquals } from "@std/assert";
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
    ...{ clip_toy: 2, resnet_toy: 2, siglip_toy: 2, vit_toy: 2 },
  });
});

Deno.test("a JPEG from elsewhere than a file is read without any permission", async () => {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--no-check", "tests/support/read_picture_once.ts"],
    cwd: new URL("..", import.meta.url),
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const file = await Deno.readFile(fixturePath("pictures/inputs/checker.jpg"));
  await new Blob([file]).stream().pipeTo(command.stdin);
  const { code, stdout } = await command.output();
  assertEquals([code, new TextDecoder().decode(stdout)], [0, "41 × 50\n"]);
});
