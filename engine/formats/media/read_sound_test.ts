import { assert, assertEquals, assertRejects } from "@std/assert";
import { FormatError, ResourceError, UnsupportedError } from "../../errors.ts";
import { fixturePath } from "../../../tests/support/fixtures.ts";
import { readSound } from "./read_sound.ts";

const MP3 = Deno.readFileSync(fixturePath("speech/audio/tone.mp3"));
const bytesOf = (text: string) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

Deno.test("an MP3 file has the samples that libsndfile reads", async () => {
  const { samples, rate } = await readSound(MP3);
  assertEquals([samples.length, rate], [6400, 16000]);
  const expected = [5.07757068e-05, -1.48865674e-02, -2.94241626e-02, -4.31222841e-02];
  expected.forEach((value, i) => {
    assert(Math.abs(samples[1000 + i]! - value) < 2e-6, `${samples[1000 + i]}`);
  });
});

Deno.test("a sound may lie anywhere in memory", async () => {
  const larger = Uint8Array.of(0xee, ...MP3, 0xee);
  assertEquals(await readSound(larger.subarray(1, -1)), await readSound(MP3));
});

Deno.test("a sound that is longer than allowed is refused before all of it is decoded", async () => {
  await assertRejects(
    () => readSound(MP3, { maxSeconds: 0.1 }),
    ResourceError,
    "longer than 0.1 s",
  );
});

Deno.test("sounds of other kinds are refused by name, with what converts them", async () => {
  const kinds: Readonly<Record<string, string>> = {
    "fLaC\0\0\0\x22": "FLAC",
    "OggS\0\x02": "Ogg",
    "\0\0\0\x20ftypM4A ": "M4A",
    "\x1a\x45\xdf\xa3": "WebM",
    "FORM\0\0\0\0AIFF": "AIFF",
    "\xff\xf1\x50\x80": "AAC",
  };
  for (const [start, name] of Object.entries(kinds)) {
    const error = await assertRejects(() => readSound(bytesOf(start)), UnsupportedError, name);
    assert(error.message.includes("ffmpeg"), error.message);
  }
});

Deno.test("what is no sound is refused", async () => {
  await assertRejects(() => readSound(new Uint8Array(0)), FormatError, "is empty. Give another");
  await assertRejects(() => readSound(bytesOf("hello")), FormatError, "6c 6f. Convert it: ffmpeg");
  await assertRejects(() => readSound(bytesOf("RIFF\0\0\0\0AVI ")), FormatError, "no WAV");
  const page = () => readSound(bytesOf("<html><body>"), { file: "a.mp3" });
  await assertRejects(page, FormatError, "a.mp3: is an HTML page, not a sound. Fetch");
  const frames = bytesOf("\xff\xfb" + "\0".repeat(4000));
  await assertRejects(() => readSound(frames, { file: "a.mp3" }), FormatError, "a.mp3: is damaged");
});

Deno.test("what is no option of a sound is refused", async () => {
  const wrong = (of: unknown, options?: unknown) => readSound(of as Uint8Array, options as object);
  await assertRejects(() => wrong("talk.mp3"), TypeError, "give its bytes");
  await assertRejects(() => wrong(MP3, { maxSecond: 1 }), RangeError, "Did you mean maxSeconds?");
  await assertRejects(() => wrong(MP3, { maxSeconds: NaN }), RangeError, "maxSeconds NaN");
});
