// Writes down what is said in a WAV or MP3 file, as subtitles; silence is found first and left out.
//
//   deno run --allow-read --allow-write --allow-env --allow-net --allow-run=pip examples/transcribe.ts FILE [MODEL]

import { load, loadGraph, pullModel, readSound, subtitles, transcribe } from "../mod.ts";

const [file, name = "whisper-tiny"] = Deno.args;
if (file === undefined) throw new TypeError("Name a WAV or MP3 file");
const sound = await readSound(await Deno.readFile(file), { file });

using model = await load(name, { sessions: 4 });
using vad = await loadGraph(await pullModel("silero-vad"));
const { segments, language, duration } = await transcribe(model, sound, { vad }).result;
console.log(`${segments.length} stretches of ${language} in ${duration.toFixed(1)} s`);
console.log(subtitles(segments, "vtt"));
