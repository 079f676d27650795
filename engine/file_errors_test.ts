import { assertEquals, assertMatch } from "@std/assert";
import { ResourceError, type SourceError } from "./errors.ts";
import { folderOf, readError, writeError } from "./file_errors.ts";

const failure = (code: string): Error => Object.assign(new Error(`words of ${code}`), { code });

Deno.test("files that the system refuses are told with what to do about it", () => {
  const { NotFound, NotCapable, PermissionDenied } = Deno.errors;
  const folder = import.meta.dirname!;
  const rows: readonly (readonly [SourceError | ResourceError, RegExp])[] = [
    [readError("a/b", new NotFound("x")), /^a\/b: no such file or folder\. Check the path$/],
    [readError("a/b", new NotCapable("x")), /Run with --allow-read=a\/b$/],
    [readError("a/b", new PermissionDenied("x")), /refuses to open it\. Check its owner and mode$/],
    [writeError("no/b", new NotFound("x")), /^no\/b: there is no folder no\/\. Create it first$/],
    // The folder is there, and so takes nothing.
    [writeError(`${folder}/b`, new NotFound("x")), /engine\/ takes no new files\. Give another$/],
    [writeError("a/b", new NotCapable("x")), /Run with --allow-write=a\/b$/],
    [writeError("a/b", new NotCapable("x"), { asked: "a/" }), /Run with --allow-write=a\/$/],
    [writeError("a/b", new PermissionDenied("x")), /to write it\. Check the owner and mode of its/],
    [writeError("a", failure("ENOSPC")), /^a: the disk is full\. Make room$/],
    [writeError("a", failure("EDQUOT")), /^a: the disk is full\. Make room$/],
    [writeError("a", failure("EROFS")), /can only be read\. Give a path on another one$/],
    [writeError("a", failure("EIO")), /^a: cannot be written \(words of EIO\)$/],
    [readError("a", failure("EIO")), /^a: cannot be opened \(words of EIO\)$/],
    ...[readError, writeError].flatMap((errorOf) =>
      [
        [errorOf("a", failure("EISDIR")), /it is a folder\. Give the name of a file in it$/],
        [errorOf("a", failure("ENOTDIR")), /is a file and no folder\. Check the path$/],
        [errorOf("a", failure("ENAMETOOLONG")), /name is too long\. Give a shorter one$/],
      ] as const
    ),
  ];
  for (const [{ message }, expected] of rows) assertMatch(message, expected);
  assertEquals(writeError("a", failure("ENOSPC")) instanceof ResourceError, true);
  assertEquals(["a", "/a", "x/y/a"].map(folderOf), ["", "/", "x/y/"]);
});
