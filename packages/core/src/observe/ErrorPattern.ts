/**
 * Error patterns: the part of a message that all errors of one cause share. Placeholders replace the parts that differ,
 * such as numbers, ids, addresses and quoted text. Words, names of errors, errno codes, HTTP status codes and SQLSTATEs
 * stay.
 *
 * Log analysis calls a pattern a template; error trackers call it the normalised part of a fingerprint.
 */
import * as ErrorCode from "./internal/errorCode.ts"

/** The characters of a message that are read; messages of dead letters are shorter. */
const inputLimit = 1024

/**
 * The longest pattern, in characters. Messages of dead letters are cut at 256 characters. Numbers and ids
 * differ in length, so the last word differs between such messages. A pattern ends before it.
 */
export const limit = 200

/** Not within a word, and not after a placeholder that replaced part of one. */
const start = String.raw`(?<![\p{L}\p{N}_>])`
/** The place where a separate word may begin. No replaced text ends with one of these characters. */
const free = String.raw`(?<=^|[\s([{=,:])`
const end = String.raw`(?![\p{L}\p{N}_])`
const code = String.raw`(?:[a-z]+(?:_[a-z]+)+|[A-Z]+(?:_[A-Z]+)+|E[A-Z]{4,})`
const part = String.raw`[\p{L}\p{N}_.@%+~-]`
const noon = String.raw`(?: ?[AaPp]\.?[Mm]\.?)`
const clock = String.raw`\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?${noon}?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))*`
const month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
const day = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
const units = "(?:ns|µs|us|ms|millis(?:econds?)?|milliseconds?|s|secs?|seconds?|mins?|minutes?|hours?|hrs?|days?)"
const hex = String.raw`[\da-fA-F]`
const amount = String.raw`\d+(?:\.\d+)?`
/** The letters and digits that Kubernetes gives to pods. */
const safe = "[bcdfghjklmnpqrstvwxz2456789]"

/**
 * Kinds of text and their placeholders; at each place, the first that matches counts. A placeholder replaces every text with
 * digits or quotes that is not kept, so the pattern of a pattern is the pattern itself.
 */
const rules: ReadonlyArray<readonly [placeholder: string, sources: ReadonlyArray<string>]> = [
  ["kept", ["<(?:addr|arn|duration|email|id|num|path|size|str|time|url)>"]],
  // V8 shows the beginning of the text between quotes, with the quotes that are in it.
  ["<str>", [String.raw`(?:\.{3})?".*"(?:\.{3})?(?= is not valid JSON)`]],
  ["unquoted", ErrorCode.sources],
  [
    "unquoted",
    [
      // The names of a JSON object, the fields of a path as in `at ["user"]["email"]`, and codes.
      String.raw`(?<=[{,] ?)"[A-Za-z_]+"(?= ?: ?[\d"[{tfn-])`,
      String.raw`(?<=\bat |\])\["[A-Za-z_]+"\]`,
      ...[`"`, `'`, "`"].map((quote) => String.raw`${free}${quote}${code}${quote}(?=$|[\s)\]},;:.](?!\d))`)
    ]
  ],
  [
    "<str>",
    [
      String.raw`"(?:\\.|[^"\\])*"`,
      // Without an end, since the message was cut.
      String.raw`${free}".*$`,
      // `this`, and `this'
      "`[^`']*['`]",
      "“[^”]*”",
      "«[^»]*»",
      // A quote within a word is an apostrophe.
      String.raw`(?<![\p{L}\p{N}_>])'(?:[^']|'(?=[\p{L}\p{N}_<]))*'(?![\p{L}\p{N}_<])`
    ]
  ],
  [
    "<id>",
    [
      // A JSON web token; the request ids of S3, in base64; nanoid; what Kubernetes adds to the names of pods.
      String.raw`${start}eyJ[\w-]{4,}\.[\w-]+(?:\.[\w-]*)?${end}`,
      String.raw`${free}(?!/)(?=[A-Za-z+/]{0,60}\d)(?=[a-z\d+/]{0,60}[A-Z])[A-Za-z\d+/]{40,}={0,2}${end}`,
      String.raw`${free}(?=[\w-]{0,20}\d[A-Za-z_-]{1,20}\d)(?=[\w-]{0,20}[a-z])(?=[\w-]{0,20}[A-Z])[\w-]{21}(?![\w-])`,
      String.raw`(?<=[a-z\d]-)(?=[a-z]{0,9}\d)[a-z\d]{8,10}-(?:${safe}{5}|(?=[a-z]{0,4}\d)[a-z\d]{5})${end}`
    ]
  ],
  ["<url>", [String.raw`${start}[A-Za-z][A-Za-z\d+.-]{1,15}://[^\s"'<>{},]*[\p{L}\p{N}_/%&~*+$@-]`]],
  ["<email>", [String.raw`${start}[\w.+-]+@[\w-]+(?:\.[\w-]+)+`]],
  ["<arn>", [String.raw`${start}arn:aws[\w:/.*-]*`]],
  [
    "<path>",
    [
      String.raw`${free}(?:\.{1,2}|~)?/${part}+(?:/${part}*)*(?::\d+){0,2}`,
      String.raw`${start}[A-Za-z]:(?:\\${part}+)+(?::\d+){0,2}`
    ]
  ],
  ["<addr>", [String.raw`${start}(?:${hex}{2}[:-]){5}${hex}{2}${end}(?![:-]${hex})`]],
  [
    "<time>",
    [
      String.raw`${start}\d{4}-\d\d-\d\d(?:[T ]${clock})?`,
      String.raw`${start}${day},? (?:\d\d? )?[A-Z][a-z]{2}(?: \d\d?)?,? \d{4} ${clock}`,
      String.raw`${start}(?:\d{4}/\d\d?/\d\d?|\d\d?/\d\d?/\d{4})(?:,? ${clock})?`,
      String.raw`${start}(?:${month} \d\d?(?:st|nd|rd|th)?|\d\d?(?:st|nd|rd|th)? ${month})(?:,? \d{4})?(?:,?(?: at)? ${clock})?${end}`,
      String.raw`${start}\d\d?:\d\d(?::\d\d)?${noon}${end}`,
      String.raw`${start}\d\d:\d\d:\d\d(?:[.,]\d+)?Z?`
    ]
  ],
  [
    "<addr>",
    [
      String.raw`${start}\d{1,3}(?:\.\d{1,3}){3}(?::\d+|/\d+)?${end}`,
      String.raw`${start}\[?(?=[\da-fA-F:]*\d)(?:(?:${hex}{1,4}:){7}${hex}{1,4}|(?:${hex}{1,4}(?::${hex}{1,4})*)?::(?:${hex}{1,4}(?::${hex}{1,5})*)?)(?:%\w+)?(?:\](?::\d+)?|${end})`,
      String.raw`${start}(?:localhost|[A-Za-z][\w-]*(?:\.[\w-]+)+):\d+${end}`,
      String.raw`${start}[A-Za-z][\w-]+:\d{4,5}${end}`
    ]
  ],
  ["<id>", [String.raw`${start}${hex}{8}-(?:${hex}{4}-){3}${hex}{12}`]],
  [
    "<duration>",
    [
      String.raw`${amount}(?:[eE][+-]?\d+)? ?${units}${end}`,
      String.raw`(?:${amount}(?:ms|[dhms]))+${end}`,
      // ISO 8601
      String.raw`${start}P(?=\d|T\d)(?:${amount}[YMWD])*(?:T(?:${amount}[HMS])+)?${end}`
    ]
  ],
  ["<size>", [String.raw`\d+(?:\.\d+)? ?(?:[kKMGTP]i?[bB]|B|bytes?|octets|characters|chars)${end}`]],
  ["<num>", [String.raw`(?:${free}[+-])?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?%?${end}`]],
  ["word", [String.raw`[\p{L}\p{M}\p{N}_]+`]]
]

let compiled: RegExp | undefined
/** Made with the first message: compiling its character classes takes a sixth of the time of the whole import. */
const any = (): RegExp =>
  (compiled ??= new RegExp(rules.map(([, sources]) => `(${sources.join("|")})`).join("|"), "gu"))

/** Control characters, with the escape sequences of terminals. */
const blanks = /(?:\p{Cc}\[[\d;]*m|[\p{Cc}\s])+/gu

const isId = (word: string): boolean =>
  /^(?:0x[\da-f]+|[\da-f]{8,})$/i.test(word) ||
  /^[a-z]{2,8}_(?=[a-z\d]*[A-Z])[A-Za-z\d]{8,}$/.test(word) ||
  (word.length >= 6 && /\d[^\d]+\d/.test(word))

const shorten = (word: string): string => {
  if (!/\p{N}/u.test(word) || ErrorCode.isCode(word)) return word
  return isId(word) ? "<id>" : word.replaceAll(/\p{N}+/gu, "<num>")
}

const shown = (rule: number, text: string): string => {
  const [placeholder] = rules[rule]!
  if (placeholder === "kept") return text
  if (placeholder === "unquoted") return text.replaceAll(/["'`]/g, "")
  return placeholder === "word" ? shorten(text) : placeholder
}

/**
 * Returns the pattern of an error's message, of at most {@link limit} characters. It never throws, and takes about the
 * same time for every message.
 *
 * @example
 * ```ts
 * import { ErrorPattern } from "@requeue/core/port"
 *
 * ErrorPattern.of("connect ECONNREFUSED 10.0.0.7:5432") // => "connect ECONNREFUSED <addr>"
 * ErrorPattern.of("order 4711: HTTP 503 after 30.2 s") // => "order <num>: HTTP 503 after <duration>"
 * ```
 */
export const of = (message: string): string => {
  // A stack in a message describes the program, and differs between failures.
  const [first = ""] = message.slice(0, inputLimit).split(/\n\s+at (?!\[)/, 1)
  const text = first.replaceAll(blanks, " ").trim()
  let pattern = ""
  let from = 0
  for (const match of text.matchAll(any())) {
    const rule = match.findIndex((found, group) => group > 0 && found !== undefined) - 1
    const next = text.slice(from, match.index) + shown(rule, match[0])
    if (pattern.length + next.length > limit) return finished(pattern === "" ? next.slice(0, limit) : pattern)
    pattern += next
    from = match.index + match[0].length
  }
  return finished(pattern + text.slice(from, from + limit - pattern.length))
}

/** Lists of any length have one pattern. */
const finished = (pattern: string): string => pattern.replaceAll(/(<[a-z]+>)(?:, ?\1)+/g, "$1").trim()
