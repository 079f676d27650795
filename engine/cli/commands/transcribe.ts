// `troodon transcribe`: what is said in a sound, as text, with times, as JSON or as subtitles.

import { readSound } from "../../formats/media/read_sound.ts";
import type { LoadedGraph } from "../../onnx/running/graph_types.ts";
import type { TranscriptWord } from "../../pipelines/speech/transcript.ts";
import { UsageError } from "../args.ts";
import { type Command, type Context, defineCommand } from "../command.ts";
import { readExcludedKernels } from "../excluded_kernels.ts";
import { fetchModel, type SourceFlags } from "../fetch.ts";
import { LOAD_FLAGS, loadOptions } from "../flags.ts";
import { readMedia } from "../media_files.ts";

/** Model when none is named. */
const DEFAULT_MODEL = "whisper-tiny";
/** What finds speech. */
const DETECTOR = "silero-vad";

/** The command. */
export const transcribe: Command = defineCommand({
  name: "troodon transcribe",
  summary: "Writes down what is said in a sound, or translates it into English.",
  positionals: ["FILE"],
  flags: {
    model: { type: "string", short: "m", value: "MODEL", help: `who listens (${DEFAULT_MODEL})` },
    language: {
      type: "string",
      short: "l",
      value: "LANGUAGE",
      help: "what is spoken: de, german (what it sounds like)",
    },
    task: {
      type: "string",
      choices: ["transcribe", "translate"],
      help: "write it down, or translate it into English (transcribe)",
    },
    timestamps: { type: "boolean", help: "print when each stretch begins and ends" },
    words: {
      type: "boolean",
      help: "time single words, each with a line, a subtitle, or its place in JSON of its own",
    },
    srt: { type: "boolean", help: "print SubRip subtitles" },
    vtt: { type: "boolean", help: "print WebVTT subtitles" },
    vad: { type: "boolean", help: `leave silence out, which ${DETECTOR} finds` },
    prompt: {
      ...{ type: "string", short: "p", value: "TEXT" },
      help: "a text with names and words that may occur",
    },
    "condition-on-previous": {
      type: "boolean",
      help: "tell the model what it heard in the windows before",
    },
    temperature: {
      type: "number",
      min: 0,
      help: "only this one; 0: the likeliest (0, then more where answers repeat themselves)",
    },
    seed: { type: "integer", value: "N", help: "seed of the random numbers" },
    ...LOAD_FLAGS,
  },
  examples: [
    ["troodon transcribe talk.wav", "the text"],
    ["troodon transcribe talk.mp3 --language de --task translate", "German, as English text"],
    ["troodon transcribe film.wav --vtt --vad > film.vtt", "subtitles"],
    ["ffmpeg -i talk.m4a -f wav - | troodon transcribe -", "another kind, through a pipe"],
    ["troodon transcribe talk.wav --words", "when each word is said"],
    ["troodon transcribe talk.wav --model ./whisper-base --json", "a folder; all that is known"],
  ],
  notes: ["FILE is WAV of any rate, or MP3: a path, an address, or - for standard input."],
}, async (context, { positionals: [path], flags }) => {
  const { terminal, signal } = context;
  const forms = ["timestamps", "srt", "vtt", "json"].filter((name) =>
    flags[name as keyof typeof flags]
  );
  if (forms.length > 1) {
    throw new UsageError(`Give one of ${forms.map((f) => `--${f}`).join(", ")}`);
  }
  const { words = false } = flags;
  const { bytes, file } = await readMedia(context, { path, kind: "sound" });
  const sound = await readSound(bytes, { file });
  const { openModel } = await import("../open_model.ts");
  const { transcribe } = await import("../../pipelines/speech/transcribe.ts");
  const { subtitles } = await import("../../pipelines/speech/subtitles.ts");
  using opened = await openModel(flags.model ?? DEFAULT_MODEL, {
    ...{ flags, options: { ...loadOptions(flags), words }, context },
  });
  using detector = flags.vad ? await openDetector(context, flags) : undefined;
  const { model } = opened;
  const transcription = transcribe(model, sound, {
    ...flags.language !== undefined && { language: flags.language },
    ...flags.task !== undefined && { task: flags.task as "transcribe" | "translate" },
    ...flags.prompt !== undefined && { prompt: flags.prompt },
    ...flags.temperature !== undefined && { temperatures: [flags.temperature] },
    ...flags.seed !== undefined && { seed: flags.seed },
    ...detector && { vad: detector },
    conditionOnPrevious: flags["condition-on-previous"] ?? false,
    words,
    signal,
  });
  const isTimed = words || flags.timestamps;
  if (!flags.srt && !flags.vtt && !flags.json) {
    let said = "";
    for await (const segment of transcription) {
      said += segment.text;
      if (!isTimed) terminal.out(segment.text);
      else for (const part of segment.words ?? [segment]) terminal.out(lineOf(part));
    }
    if (!isTimed && said !== "") terminal.out("\n");
    await transcription.result;
    signal.throwIfAborted();
    return 0;
  }
  const { text, segments, language, duration, seed } = await transcription.result;
  if (flags.json) {
    const shown = segments.map(({ tokens, ...segment }) => ({
      ...segment,
      ids: tokens.map(({ id }) => id),
    }));
    const facts = { model: opened.name, device: model.device, language, duration, seed };
    terminal.out(JSON.stringify({ ...facts, text, segments: shown }) + "\n");
  } else {
    const shown = segments.flatMap((segment) => segment.words ?? [segment]);
    terminal.out(subtitles(shown, flags.srt ? "srt" : "vtt"));
  }
  signal.throwIfAborted();
  return 0;
});

async function openDetector(
  { terminal, signal }: Context,
  flags: SourceFlags & { readonly threads?: number | undefined },
): Promise<LoadedGraph & Disposable> {
  const path = await fetchModel(DETECTOR, { flags, pick: { terminal, signal } });
  const { loadGraph } = await import("../../onnx/running/load_graph.ts");
  const excludeKernels = await readExcludedKernels(flags["cache-dir"]);
  return await loadGraph(path, { threads: flags.threads, excludeKernels });
}

/** With times in front. */
function lineOf({ start, end, text }: TranscriptWord): string {
  return `[${time(start)} --> ${time(end)}] ${text.trim()}\n`;
}

/** Minutes, seconds and thousandths. */
function time(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  return `${String(minutes).padStart(2, "0")}:${
    (seconds - 60 * minutes).toFixed(3).padStart(6, "0")
  }`;
}
