// Files that the system does not let be read or written: why, and what to do about it, from what it says of them.

import { ResourceError, SourceError } from "./errors.ts";

type Why = readonly [reason: string, remedy: string];

/** By the system's code, whatever was to be done. */
const REASONS: Readonly<Record<string, Why>> = {
  EISDIR: ["it is a folder", "Give the name of a file in it"],
  ENOTDIR: ["a part of its path is a file and no folder", "Check the path"],
  ENAMETOOLONG: ["its name is too long", "Give a shorter one"],
  EROFS: ["its disk can only be read", "Give a path on another one"],
};

/** The folder part of a path, up to and with its last separator; empty for a plain name. */
export function folderOf(path: string): string {
  const cut = Math.max(
    path.lastIndexOf("/"),
    Deno.build.os === "windows" ? path.lastIndexOf("\\") : -1,
  );
  return path.slice(0, cut + 1);
}

/** The error for a file or folder that could not be opened or read. */
export function readError(path: string, cause: unknown): SourceError {
  const [reason, remedy] = whyNotRead(path, cause);
  return new SourceError(reason, { file: path, remedy, cause });
}

/** The error for a file or folder that could not be written; `asked`: what Deno has to be allowed to write for it. */
export function writeError(
  path: string,
  cause: unknown,
  { asked = path }: { readonly asked?: string } = {},
): SourceError | ResourceError {
  const code = codeOf(cause);
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new ResourceError("the disk is full", { file: path, remedy: "Make room", cause });
  }
  const [reason, remedy] = whyNotWritten(path, cause, asked);
  return new SourceError(reason, { file: path, remedy, cause });
}

function whyNotRead(path: string, cause: unknown): Why | readonly [string] {
  const { NotFound, NotCapable, PermissionDenied } = Deno.errors;
  if (cause instanceof NotFound) return ["no such file or folder", "Check the path"];
  if (cause instanceof NotCapable) return ["Deno may not read it", `Run with --allow-read=${path}`];
  if (cause instanceof PermissionDenied) {
    return ["the system refuses to open it", "Check its owner and mode"];
  }
  return REASONS[codeOf(cause)] ?? [`cannot be opened (${wordsOf(cause)})`];
}

function whyNotWritten(path: string, cause: unknown, asked: string): Why | readonly [string] {
  const { NotFound, NotCapable, PermissionDenied } = Deno.errors;
  const folder = folderOf(path.replace(/[/\\]+$/, "")) || ".";
  if (cause instanceof NotCapable) {
    return ["Deno may not write it", `Run with --allow-write=${asked}`];
  }
  if (cause instanceof NotFound) {
    // Folders that the system makes up, as /proc, say of what they do not take that it is not there.
    return isFolder(folder)
      ? [`the folder ${folder} takes no new files`, "Give another"]
      : [`there is no folder ${folder}`, "Create it first"];
  }
  if (cause instanceof PermissionDenied) {
    return ["the system refuses to write it", "Check the owner and mode of its folder"];
  }
  return REASONS[codeOf(cause)] ?? [`cannot be written (${wordsOf(cause)})`];
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}

function codeOf(cause: unknown): string {
  return String((cause as { readonly code?: unknown } | null)?.code);
}

function wordsOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
