// Escapes of addresses (RFC 3986, section 2.1).

/** What a text with percent signs stands for; one whose escapes are no UTF-8 is meant as it is. */
export function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
