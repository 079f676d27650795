// The error classes of `Deno.errors` for runtimes that tell errors apart by a code: an error is one of a class if it has
// one of the codes of the class.

type Codes = readonly string[];

function errorClass(name: string, codes: Codes): new (message: string) => Error {
  return class extends Error {
    readonly code: string | undefined = codes[0];

    constructor(message: string) {
      super(message);
      this.name = name;
    }

    static override [Symbol.hasInstance](value: unknown): boolean {
      const { code } = (value ?? {}) as { readonly code?: unknown };
      return typeof code === "string" && codes.includes(code);
    }
  };
}

/** What the engine asks for. Nothing is ever `NotCapable` where there are no permissions. */
export const ERRORS = {
  NotFound: errorClass("NotFound", ["ENOENT"]),
  PermissionDenied: errorClass("PermissionDenied", ["EACCES", "EPERM"]),
  NotCapable: errorClass("NotCapable", []),
  BrokenPipe: errorClass("BrokenPipe", ["EPIPE"]),
  AddrInUse: errorClass("AddrInUse", ["EADDRINUSE"]),
  AddrNotAvailable: errorClass("AddrNotAvailable", ["EADDRNOTAVAIL"]),
} as const;
