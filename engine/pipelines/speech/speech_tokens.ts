// The tokens with which a speech recogniser is asked: language, task, with or without timestamps. What
// generation_config.json does not name is found in the vocabulary by its text, which all Whisper models share.

import { UnsupportedError } from "../../errors.ts";
import type { SpeechTokens } from "../../formats/media/speech_config.ts";
import type { Tokenizer } from "../../text/tokenizer.ts";

/**
 * What is to be done with speech: written down, or translated into English.
 * @category Speech
 */
export type SpeechTask = "transcribe" | "translate";

/** How speech is asked for. */
export interface SpeechWish {
  /** Code of the language, as the model has it; undefined where there is none to say. */
  readonly language: string | undefined;
  readonly task: SpeechTask;
  readonly hasTimestamps: boolean;
}

/** The tokens of a model, complete. */
export interface SpeechVocabulary {
  /** Begins every answer. */
  readonly start: number;
  readonly ends: ReadonlySet<number>;
  /** Codes with their tokens; empty of models that know English only. */
  readonly languages: ReadonlyMap<string, number>;
  /** In front of what was said before; absent: the model cannot be told. */
  readonly previous: number | undefined;
  /** What a silent window begins with; its probability is that of silence. */
  readonly noSpeech: number;
  readonly noTimestamps: number;
  /** The token of 0 seconds; those behind it are later, up to the end of a window. */
  readonly firstTimestamp: number;
  readonly config: SpeechTokens;
  /**
   * The tokens from `start` on that ask for something.
   *
   * @throws {UnsupportedError} If the model has no token for it.
   */
  ask(wish: SpeechWish): number[];
  /**
   * The code of a language by its code or English name.
   *
   * @throws {UnsupportedError} If the model does not know it.
   */
  codeOf(language: string): string;
}

/**
 * Completes the tokens of a model.
 *
 * @param name Of the model, for messages.
 * @throws {UnsupportedError} If there are no timestamps.
 */
export function speechVocabulary(
  tokenizer: Tokenizer,
  { start, config, name }: {
    readonly start: number;
    readonly config: SpeechTokens;
    readonly name: string;
  },
): SpeechVocabulary {
  const fail = (message: string, remedy?: string): never => {
    throw new UnsupportedError(message, { file: name, remedy });
  };
  const noTimestamps = config.noTimestamps ?? tokenizer.idOf("<|notimestamps|>") ??
    fail("names no token <|notimestamps|>, and is no known speech recogniser");
  const known = config.languages.size > 0 ? config.languages : languagesOf(tokenizer, start);
  const languages = config.isMultilingual ?? known.size > 1 ? known : new Map<string, number>();
  return {
    start,
    ends: tokenizer.endOfGenerationIds,
    languages,
    previous: config.previous ?? tokenizer.idOf("<|startofprev|>"),
    noSpeech: noTimestamps - 1,
    noTimestamps,
    firstTimestamp: noTimestamps + 1,
    config,
    ask({ language, task, hasTimestamps }) {
      const wished = [start];
      if (languages.size > 0) {
        if (language !== undefined) wished.push(languages.get(language)!);
        wished.push(
          config.tasks.get(task) ?? tokenizer.idOf(`<|${task}|>`) ??
            fail(`has no token for the task ${task}`),
        );
      } else if (task === "translate") fail("knows English only, and does not translate");
      if (!hasTimestamps) wished.push(noTimestamps);
      return wished;
    },
    codeOf(language) {
      const wanted = language.toLowerCase();
      if (languages.size === 0) {
        return wanted === "en" || wanted === "english" ? "en" : fail(
          `knows English only, and not ${language}`,
        );
      }
      if (languages.has(wanted)) return wanted;
      const names = new Intl.DisplayNames(["en"], { type: "language" });
      const code = [...languages.keys()].find((code) => names.of(code)?.toLowerCase() === wanted);
      return code ??
        fail(
          `does not know the language ${language}`,
          `Use one of ${[...languages.keys()].sort().join(", ")}`,
        );
    },
  };
}

/** Languages stand behind the token with which answers begin. */
function languagesOf(tokenizer: Tokenizer, start: number): Map<string, number> {
  const found = new Map<string, number>();
  for (let id = start + 1; id < tokenizer.vocabSize; id++) {
    const [, code] = /^<\|([a-z]{2,3})\|>$/.exec(tokenizer.decode([id])) ?? [];
    if (code === undefined) break;
    found.set(code, id);
  }
  return found;
}
