// Methods of the language that Node 22 and browsers of 2025 lack, put where the engine calls them, as the standard says and
// only where they are missing: base 64 and hexadecimal of bytes (ECMAScript 2026), `RegExp.escape` (2025).

function define(target: object, methods: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(methods)) {
    if (name in target) continue;
    Object.defineProperty(target, name, { value, writable: true, configurable: true });
  }
}

const LONGEST = 0x8000;

define(Uint8Array, {
  fromBase64(text: string): Uint8Array {
    const codes = atob(text), bytes = new Uint8Array(codes.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = codes.charCodeAt(i);
    return bytes;
  },
});
define(Uint8Array.prototype, {
  toBase64(this: Uint8Array): string {
    let text = "";
    for (let at = 0; at < this.length; at += LONGEST) {
      text += String.fromCharCode(...this.subarray(at, at + LONGEST));
    }
    return btoa(text);
  },
  toHex(this: Uint8Array): string {
    return Array.from(this, (byte) => byte.toString(16).padStart(2, "0")).join("");
  },
});
define(RegExp, {
  escape: (text: string): string =>
    text
      .replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")
      .replace(
        /^[0-9a-zA-Z]|[,\-=<>#&!%:;@~'`"\s]/g,
        (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, "0")}`,
      ),
});
