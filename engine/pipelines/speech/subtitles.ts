// Transcripts as subtitle files: SubRip (.srt), and WebVTT as the W3C has it.

import type { TranscriptSegment } from "./transcript.ts";

/**
 * Kinds of subtitle files.
 * @category Speech
 */
export type SubtitleFormat = "srt" | "vtt";

/**
 * Segments as the text of a subtitle file, those without text left out.
 *
 * @throws {RangeError} If there is no such kind of file.
 *
 * @example
 * ```ts
 * import { subtitles } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const text = subtitles([{ start: 1, end: 2.5, text: " Hello." }], "vtt");
 * assertEquals(text, "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nHello.\n");
 * ```
 * @category Speech
 */
export function subtitles(
  segments: readonly Pick<TranscriptSegment, "start" | "end" | "text">[],
  format: SubtitleFormat,
): string {
  if (format !== "srt" && format !== "vtt") {
    throw new RangeError(`Cannot write subtitles as "${format}": it is srt or vtt`);
  }
  const blocks = segments.map(({ start, end, text }) => ({ start, end, text: lineOf(text) }))
    .filter(({ text }) => text !== "")
    .map(({ start, end, text }, i) =>
      format === "srt"
        ? `${i + 1}\n${clock(start, ",")} --> ${clock(end, ",")}\n${text}\n`
        : `${clock(start, ".")} --> ${clock(end, ".")}\n${escaped(text)}\n`
    );
  return (format === "vtt" ? ["WEBVTT\n", ...blocks] : blocks).join("\n");
}

/** Hours, minutes, seconds and thousandths. */
function clock(seconds: number, mark: string): string {
  const ms = Math.round(Math.max(0, seconds) * 1000);
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const thousandths = String(ms % 1000).padStart(3, "0");
  return `${two(ms / 3_600_000)}:${two(ms / 60_000 % 60)}:${
    two(ms / 1000 % 60)
  }${mark}${thousandths}`;
}

/** A blank line would end the block. */
function lineOf(text: string): string {
  return text.trim().replace(/\s*[\r\n]+\s*/g, "\n");
}

/** What WebVTT takes for markup. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
