// Formats of texts as regular expressions: those that JSON Schema names (draft 2020-12, validation 7.3) and that are
// regular. A name that no standard of JSON Schema has is a remark, as the draft says.

/** By name, an expression that the whole text matches; undefined for those that are named but not read here. */
export const FORMATS: ReadonlyMap<string, string | undefined> = new Map(Object.entries(named()));

function named(): Record<string, string | undefined> {
  const year = "[0-9]{4}";
  const leap = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
  const date = `(?:${year}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])` +
    `|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|${leap}-02-29)`;
  const hours = "(?:[01][0-9]|2[0-3])";
  const minutes = "[0-5][0-9]";
  const offset = `(?:[Zz]|[+-]${hours}:${minutes})`;
  const fraction = "(?:\\.[0-9]+)?";
  const time = `(?:${hours}:${minutes}:${minutes}${fraction}${offset}|${leapSeconds(fraction)})`;
  const octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  const ipv4 = `${octet}(?:\\.${octet}){3}`;
  const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
  const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
  const quoted = '"(?:[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\x20-\\x7e])*"';
  const pointer = "(?:/(?:[^~/]|~[01])*)*";
  return {
    date,
    time,
    "date-time": `${date}[Tt]${time}`,
    duration: duration(),
    email: `(?:${atom}(?:\\.${atom})*|${quoted})` +
      `@(?:${label}(?:\\.${label})*|\\[(?:${ipv4}|IPv6:${ipv6(ipv4)})\\])`,
    hostname: hostname(label),
    ipv4,
    ipv6: ipv6(ipv4),
    uuid: "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    ...uris(ipv4),
    "uri-template": uriTemplate(),
    "json-pointer": pointer,
    "relative-json-pointer": `(?:0|[1-9][0-9]*)(?:#|${pointer})`,
    ...Object.fromEntries(
      ["idn-email", "idn-hostname", "iri", "iri-reference", "regex"]
        .map((name) => [name, undefined]),
    ),
  };
}

// A minute of 61 seconds ends a day of UTC: with each offset, at another time of the clock.
function leapSeconds(fraction: string): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const clock = (minute: number) => `${two(Math.floor(minute / 60))}:${two(minute % 60)}`;
  const day = 24 * 60;
  const last = day - 1;
  // Offsets of whole quarters of an hour, which are all that clocks have had for a lifetime.
  const quarters = Array.from({ length: day / 15 }, (_, quarter) => {
    const offset = 15 * quarter;
    const east = clock((last + offset) % day);
    const west = clock((last - offset + day) % day);
    return [`${east}:60${fraction}\\+${clock(offset)}`, `${west}:60${fraction}-${clock(offset)}`];
  });
  return `${clock(last)}:60${fraction}[Zz]|${quarters.flat().join("|")}`;
}

// RFC 3339, appendix A.
function duration(): string {
  const n = (unit: string) => `[0-9]+${unit}`;
  const time = `T(?:${n("H")}(?:${n("M")}(?:${n("S")})?)?|${n("M")}(?:${n("S")})?|${n("S")})`;
  const date = `(?:${n("D")}|${n("M")}(?:${n("D")})?|${n("Y")}(?:${n("M")}(?:${n("D")})?)?)`;
  return `P(?:${date}(?:${time})?|${time}|${n("W")})`;
}

// RFC 1123: labels of up to 63 letters, 253 in all. What a label in another script means is not looked at.
function hostname(label: string): string {
  return `(?=.{1,253}$)${label}(?:\\.${label})*`;
}

// RFC 4291, 2.2: eight groups, of which a run of zeros may be left out once; the last two may be an IPv4 address.
function ipv6(ipv4: string): string {
  const h = "[0-9a-fA-F]{1,4}";
  const tail = `(?:${h}:${h}|${ipv4})`;
  const forms = [`(?:${h}:){6}${tail}`];
  for (let before = 0; before <= 7; before++) {
    const head = before === 0 ? "" : `${h}(?::${h}){${before - 1}}`;
    const left = 7 - before;
    forms.push(`${head}::${left === 0 ? "" : `(?:${h}(?::${h}){0,${left - 1}})?`}`);
    if (left >= 2) forms.push(`${head}::(?:${h}:){0,${left - 2}}${ipv4}`);
  }
  return `(?:${forms.join("|")})`;
}

// RFC 3986, appendix A.
function uris(ipv4: string): Record<string, string> {
  const pct = "%[0-9a-fA-F]{2}";
  const plain = "A-Za-z0-9._~!$&'()*+,;=\\-";
  const pchar = `(?:[${plain}:@]|${pct})`;
  const userinfo = `(?:[${plain}:]|${pct})*@`;
  const literal = `\\[(?:${ipv6(ipv4)}|v[0-9a-fA-F]+\\.[${plain}:]+)\\]`;
  const authority = `(?:${userinfo})?(?:${literal}|(?:[${plain}]|${pct})*)(?::[0-9]*)?`;
  const segments = `(?:/${pchar}*)*`;
  const rooted = `/(?:${pchar}+${segments})?`;
  const first = `${pchar}+${segments}`;
  const noColon = `(?:[${plain}@]|${pct})+${segments}`;
  const query = `(?:\\?(?:${pchar}|[/?])*)?`;
  const fragment = `(?:#(?:${pchar}|[/?])*)?`;
  const uri = `[A-Za-z][A-Za-z0-9+.-]*:(?://${authority}${segments}|${rooted}|${first}|)` +
    query + fragment;
  const relative = `(?://${authority}${segments}|${rooted}|${noColon}|)${query}${fragment}`;
  return { uri, "uri-reference": `(?:${uri}|${relative})` };
}

// RFC 6570, 2: literals, and expressions in braces.
function uriTemplate(): string {
  const pct = "%[0-9a-fA-F]{2}";
  const literal = "[^\\x00-\\x20\\x7f\"'%<>\\\\^`{|}]";
  const varchar = `(?:[A-Za-z0-9_]|${pct})`;
  const variable = `${varchar}(?:\\.?${varchar})*(?::[1-9][0-9]{0,3}|\\*)?`;
  return `(?:${literal}|${pct}|\\{[+#./;?&=,!@|]?${variable}(?:,${variable})*\\})*`;
}
